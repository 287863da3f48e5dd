"""Experience: what has a cluster learnt of how long its jobs take, and how right was it?

Every expectation is held against what then came, and the quantile that is asked for moves with how often it
was exceeded (adaptive conformal inference, Gibbs and Candès 2021). An overrun is known when it happens, not
when the job ends. All is told in the order of time, so nothing is learnt before it could be known.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from wattline.state import Job, JobState, State
from wattline.twin.history import Group, History
from wattline.twin.remaining import worked_seconds

P50, P90 = 0.5, 0.9
# The quantile wanders no further: what comes late is learnt late, and must not run away meanwhile.
_LEVELS = (0.87, 0.95)
_LEARNING = 0.005  # how far one miss moves it


class Level:
    """Which quantile covers nine in ten, by what it covered so far."""

    __slots__ = ("_learning", "_range", "value")

    def __init__(self, learning: float = _LEARNING, range_: tuple[float, float] = _LEVELS) -> None:
        self.value = P90
        self._learning, self._range = learning, range_

    def learn(self, *, missed: bool) -> None:
        moved = self.value + self._learning * (float(missed) - (1.0 - P90))
        self.value = min(max(moved, self._range[0]), self._range[1])


@dataclass(frozen=True, slots=True)
class Expectation:
    """Half of such jobs take no longer than the one, nine in ten no longer than the other."""

    p50_seconds: float
    p90_seconds: float


class Experience:
    """Told of jobs as they come, begin and end."""

    def __init__(self) -> None:
        self.history = History()
        self._levels: dict[Group, Level] = {}
        self._open: dict[str, tuple[Group, float]] = {}
        self._overruns: list[tuple[float, str]] = []

    def expect(self, group: Group, at: float) -> Expectation | None:
        """Of a job like this, by all that is known now; None where nothing has ended yet."""
        self._notice_overruns(at)
        level = self._levels.get(group)
        p50 = self.history.quantile_seconds(group, P50)
        p90 = self.history.quantile_seconds(group, P90 if level is None else level.value)
        return None if p50 is None or p90 is None else Expectation(p50, p90)

    def submit(self, job: str, group: Group, at: float) -> Expectation | None:
        """The same, to be held against what comes."""
        expected = self.expect(group, at)
        if expected is not None:
            self._open[job] = (group, expected.p90_seconds)
        return expected

    def begin(self, job: str, at: float) -> None:
        if job in self._open:
            heapq.heappush(self._overruns, (at + self._open[job][1], job))

    def end(self, job: str, group: Group, at: float, seconds: float) -> None:
        self._notice_overruns(at)
        expected = self._open.get(job)
        if expected is not None:
            self._learn(job, missed=seconds > expected[1])
        self.history.add(group, seconds)

    def _notice_overruns(self, at: float) -> None:
        while self._overruns and self._overruns[0][0] < at:
            _, job = heapq.heappop(self._overruns)
            if job in self._open:
                self._learn(job, missed=True)

    def _learn(self, job: str, *, missed: bool) -> None:
        group, _ = self._open.pop(job)
        self._levels.setdefault(group, Level()).learn(missed=missed)


def group_of(project: str, gpus: int) -> Group:
    return (project, gpus)


def experience_of(state: State, at: float) -> Experience:
    """Of all jobs that a state still knows and that had succeeded by then."""
    experience = Experience()
    for moment, turn, job in sorted(_turns(state, at), key=lambda told: (told[0], told[1], told[2].id)):
        group = group_of(job.request.project, job.request.gpus)
        if turn == _ENDS:
            experience.end(job.id, group, moment, worked_seconds(job, moment))
        elif turn == _BEGINS:
            experience.begin(job.id, moment)
        else:
            experience.submit(job.id, group, moment)
    return experience


_ENDS, _COMES, _BEGINS = range(3)


def _turns(state: State, at: float) -> Iterator[tuple[float, int, Job]]:
    for job in state.jobs.values():
        ended_at, began_at = job.ended_at, job.first_started_at
        if (
            job.state is JobState.SUCCEEDED
            and ended_at is not None
            and ended_at <= at
            and began_at is not None
        ):
            yield job.submitted_at, _COMES, job
            yield began_at, _BEGINS, job
            yield ended_at, _ENDS, job
