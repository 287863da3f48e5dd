"""Waiting: which of those who run must have ended before a job fits, if each runs as long as it may?

Ends are kept in order with the state, so that an answer costs what it looks at and not all that runs.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

import msgspec

from wattline.policy.loosening import Loosened
from wattline.policy.naming import next_action
from wattline.policy.placement import choose_place
from wattline.spec.policy import Policy
from wattline.state import (
    HOLDING,
    Action,
    ActionKind,
    Job,
    JobRequest,
    Place,
    Snapshot,
    project,
    seconds_left,
)

# So many ends are looked ahead: behind more of them, a wait says little.
_MOST_ENDS = 256
_FORGOTTEN = 1024  # entries of jobs that are gone, before the list is made anew


class Wait(msgspec.Struct, frozen=True):
    """The last that must have ended, and what there is then."""

    last: str
    ends_at: float
    place: Place
    after: Snapshot


def find_wait(snapshot: Snapshot, policy: Policy, request: JobRequest, near: str | None) -> Wait | None:
    """By twice as many ends each time, then back to as few as do; None where the next ends are not enough."""
    stops: list[tuple[float, Action]] = []
    ends = Ends.of(snapshot).upcoming(snapshot)
    number, found, too_few = 1, None, 0
    while found is None:
        for ends_at, job in ends:
            stops.append((ends_at, next_action(job, ActionKind.STOP)))
            if len(stops) >= number:
                break
        found = _after(snapshot, policy, request, near, stops[:number])
        if found is None:
            if len(stops) < number or number >= _MOST_ENDS:
                return None
            too_few, number = number, 2 * number
    enough = len(stops)
    while enough - too_few > max(1, enough // 8):  # of many ends, a few more or less say the same
        middle = (too_few + enough) // 2
        fewer = _after(snapshot, policy, request, near, stops[:middle])
        if fewer is None:
            too_few = middle
        else:
            found, enough = fewer, middle
    return found


def _after(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    near: str | None,
    stops: list[tuple[float, Action]],
) -> Wait | None:
    if not stops:
        return None
    after = project(snapshot, [action for _, action in stops])
    pools = range(len(snapshot.plant.pools))
    if not Loosened(after, policy, pools).may_fit(request):
        return None
    place = choose_place(after, policy, request, near=near, explain=False).place
    ends_at, last = stops[-1]
    return None if place is None else Wait(last.job, ends_at, place, after)


class Ends:
    """When each job that set an end will have ended at the latest, the first first; kept with the state."""

    __slots__ = ("_order", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Job, float]] = {}
        self._order: list[tuple[float, str]] = []

    @staticmethod
    def of(snapshot: Snapshot) -> Ends:
        found = snapshot.lasting.get(Ends)
        if not isinstance(found, Ends):
            found = snapshot.lasting[Ends] = Ends()
        return found

    def upcoming(self, snapshot: Snapshot) -> Iterator[tuple[float, Job]]:
        self._catch_up(snapshot)
        for ends_at, job_id in self._order:
            job = snapshot.jobs.get(job_id)
            if job is not None and job.state in HOLDING and self._seen[job_id][1] == ends_at:
                yield ends_at, job

    def _catch_up(self, snapshot: Snapshot) -> None:
        """Whoever changes comes last among those who hold: the first that did not change ends the search."""
        holding = list(snapshot.holding)
        if len(self._order) > len(holding) + _FORGOTTEN:
            self._seen.clear()
            self._order.clear()
        is_new = not self._order
        for job_id in reversed(holding):
            job, seen = snapshot.jobs[job_id], self._seen.get(job_id)
            if seen is not None and seen[0] is job:
                break
            seconds = seconds_left(job)
            if job.started_at is None or seconds is None:
                continue
            ends_at = job.started_at + seconds
            self._seen[job_id] = (job, ends_at)
            if is_new:
                self._order.append((ends_at, job_id))
            elif seen is None or seen[1] != ends_at:
                insort(self._order, (ends_at, job_id))
        if is_new:
            self._order.sort()
