"""Slots: whose turn is it when, where everybody says how long they take?

Those who run leave when they said, and what they leave goes to the next who fits: by class, then by who came
first. So the whole queue can be laid out at once, on as many GPUs as are held now, without a run of the twin.
Who has waited for longer than patience lasts gets the next GPUs that leave, as many as it needs. Work that
would go before the last in line keeps coming as in the day before. Where GPUs are, and what power and heat
make of it, is left out; what that costs, errors teach (`recalibrating.py`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from itertools import chain, count

from wattline.policy.turns.reserving import expected_end
from wattline.spec.policy import Policy
from wattline.state import Job, JobRequest, State, seconds_left
from wattline.twin.lately import Lately
from wattline.units import SECONDS_PER_HOUR

_LONGEST_SECONDS = 7 * 24 * SECONDS_PER_HOUR
_DAY_SECONDS = 24 * SECONDS_PER_HOUR
_LEAST_SEEN_SECONDS = SECONDS_PER_HOUR  # less tells nothing of what may come

_Line = tuple[float, int]  # of alike: the higher class first, and how many GPUs
_Entry = tuple[float, float, str, float]  # how urgent, since when, which job, how long it takes
_MAY_COME = ""


class Slots:
    """One layout, of one moment; who comes after it is put behind all others."""

    def __init__(self, state: State, policy: Policy, at: float, lately: Lately) -> None:
        self.at = at
        self._policy = policy
        self._starts: dict[str, float] = {}
        self._ends_at = at + _LONGEST_SECONDS
        holding = [state.jobs[job_id] for job_id in state.holding]
        # When so many GPUs are free.
        self._free = [(max(at, expected_end(job, at)), job.request.gpus) for job in holding]
        heapq.heapify(self._free)
        lines = _lines_of(state, policy)
        self._last_class = max([line[0] for line in lines], default=-math.inf)
        self._lay_out(lines, self._coming(lately))

    def start_of(self, job: Job) -> float:
        """When its turn is, or as far as is looked. One that is new here is put behind all others."""
        start_at = self._starts.get(job.id)
        if start_at is None:
            start_at = self._starts[job.id] = self._add(job)
        return min(start_at, self._ends_at)

    def places(self, job: Job) -> bool:
        """Whether it is here, or goes before nobody who is."""
        request = job.request
        is_last = request.gpus == 1 and _class_rank(request, self._policy) >= self._last_class
        return is_last or job.id in self._starts

    def _add(self, job: Job) -> float:
        if not self._free:
            return math.inf
        start_at, gpus = heapq.heappop(self._free)
        heapq.heappush(self._free, (start_at + (seconds_left(job) or 0.0), job.request.gpus))
        if gpus > job.request.gpus:
            heapq.heappush(self._free, (start_at, gpus - job.request.gpus))
        return start_at

    def _coming(self, lately: Lately) -> Iterator[tuple[float, JobRequest]]:
        """What may come and go before the last in line: as in the last day, again and again."""
        seen = min(_DAY_SECONDS, self.at - lately.since)
        if seen < _LEAST_SEEN_SECONDS:
            return
        ahead = []
        classes = self._policy.classes
        before = {name for name, known in classes.items() if -known.priority < self._last_class}
        for came_at, request in reversed(lately.came):
            if came_at <= self.at - seen:
                break
            if request.scheduling_class in before and request.gpus:
                ahead.append((came_at - self.at + seen, request))
        ahead.reverse()
        for again in count() if ahead else ():
            for offset, request in ahead:
                yield self.at + again * seen + offset, request

    def _lay_out(self, lines: dict[_Line, list[_Entry]], coming: Iterator[tuple[float, JobRequest]]) -> None:
        patience = math.inf if self._policy.sharing.patience is None else self._policy.sharing.patience
        left = sum(map(len, lines.values()))
        order, following = sorted(lines), next(coming, None)
        places = dict.fromkeys(lines, 0)
        idle, unused = 0, list[tuple[float, int]]()  # GPUs that nobody who is here by then can use
        # Of those who need more than one: for whom GPUs are kept as they leave, when that may be due next.
        kept: _Line | None = None
        keep_at = patience + _longest_waiting(lines, places)
        while left and self._free and self._free[0][0] < self._ends_at:
            at, gpus = heapq.heappop(self._free)
            idle += gpus
            unused.append((at, gpus))
            while following is not None and following[0] <= at:
                line = (_class_rank(following[1], self._policy), following[1].gpus)
                if line not in lines:
                    lines[line], places[line] = [], 0
                    order = sorted(lines)
                takes = following[1].max_duration_seconds or 0.0
                lines[line].append((0.0, following[0], _MAY_COME, takes))
                keep_at = min(keep_at, following[0] + patience)
                following = next(coming, None)
            while idle:
                if kept is None and at > keep_at:
                    kept = _overtaken(lines, places, at - patience)
                chosen = kept if kept is not None else _first_that_fits(lines, order, places, idle)
                if chosen is None or chosen[1] > idle:
                    break
                kept = None
                _, _, job_id, takes = lines[chosen][places[chosen]]
                places[chosen] += 1
                if chosen[1] > 1:
                    keep_at = patience + _longest_waiting(lines, places)
                idle -= chosen[1]
                _use(unused, chosen[1])
                heapq.heappush(self._free, (at + takes, chosen[1]))
                if job_id != _MAY_COME:
                    self._starts[job_id] = at
                    left -= 1
        for free in unused:
            heapq.heappush(self._free, free)
        for line, entries in lines.items():
            for _, _, job_id, _ in entries[places[line] :]:
                self._starts[job_id] = math.inf


def all_say(state: State) -> bool:
    """Whether everybody who runs or waits says how long they take."""
    jobs = state.jobs
    waiting = (job_id for queue in state.waiting.values() for _, _, job_id in queue)
    return all(
        jobs[job_id].request.max_duration_seconds is not None for job_id in chain(state.holding, waiting)
    )


def _lines_of(state: State, policy: Policy) -> dict[_Line, list[_Entry]]:
    lines: dict[_Line, list[_Entry]] = {}
    for queue in state.waiting.values():
        first = state.jobs[queue[0][2]].request  # all of a queue are of one shape
        if not first.gpus:
            continue
        line = lines.setdefault((_class_rank(first, policy), first.gpus), [])
        for urgent, since, job_id in queue:
            job = state.jobs[job_id]
            takes = seconds_left(job) if job.past else job.request.max_duration_seconds
            if job.will_start:
                line.append((urgent, since, job_id, takes or 0.0))
    for entries in lines.values():
        entries.sort()
    return lines


def _class_rank(request: JobRequest, policy: Policy) -> float:
    known = policy.classes.get(request.scheduling_class)
    return -known.priority if known is not None else 0.0


def _first_that_fits(
    lines: dict[_Line, list[_Entry]], order: Iterable[_Line], places: dict[_Line, int], idle: int
) -> _Line | None:
    first: tuple[float, float, float] | None = None
    found = None
    for line in order:
        if line[1] > idle or places[line] >= len(lines[line]):
            continue
        if first is not None and line[0] > first[0]:
            break
        urgent, since, _, _ = lines[line][places[line]]
        if first is None or (line[0], urgent, since) < first:
            first, found = (line[0], urgent, since), line
    return found


def _longest_waiting(lines: dict[_Line, list[_Entry]], places: dict[_Line, int]) -> float:
    """Since when the first of those wait who need more than one GPU."""
    return min(
        [lines[line][at][1] for line, at in places.items() if line[1] > 1 and at < len(lines[line])],
        default=math.inf,
    )


def _overtaken(lines: dict[_Line, list[_Entry]], places: dict[_Line, int], since: float) -> _Line | None:
    """Whoever is first of those who have waited since before a time."""
    first: tuple[float, float, float] | None = None
    found = None
    for line, place in places.items():
        entries = lines[line]
        if place < len(entries) and entries[place][1] < since:
            key = (line[0], entries[place][0], entries[place][1])
            if first is None or key < first:
                first, found = key, line
    return found


def _use(unused: list[tuple[float, int]], gpus: int) -> None:
    """The last that were left go first: what was left long ago nobody could use."""
    if unused[-1][1] == gpus:
        unused.pop()
        return
    while gpus:
        at, some = unused.pop()
        if some > gpus:
            unused.append((at, some - gpus))
        gpus -= min(gpus, some)
