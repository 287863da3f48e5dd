"""Was something done in time? Clocks that run from when a wait began, for SLOs in seconds.

What is late counts as bad from the moment it is late, whether or not it ends some day: a job that waits for
ever must not look better than one that waited long.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import msgspec

from wattline.control.objectives_tally import Tally
from wattline.policy import dominant
from wattline.state import ENDED, Job, JobState, State


class Clock(msgspec.Struct, frozen=True):
    slo: int
    job: str
    began_at: float
    within_seconds: float
    left_site: str | None  # of a resume: where the attempt before it ran
    is_sure: bool  # that it will count: else it is not late before it has ended

    @property
    def due_at(self) -> float:
        return self.began_at + self.within_seconds


class Clocks:
    """By the number of an SLO and the job, those that run."""

    __slots__ = ("_due", "running")

    def __init__(self, running: Iterable[Clock] = ()) -> None:
        self.running: dict[tuple[int, str], Clock] = {}
        self._due: list[tuple[float, int, str]] = []
        for clock in running:
            self.start(clock)

    def start(self, clock: Clock) -> None:
        self.running[clock.slo, clock.job] = clock
        if clock.is_sure:
            heapq.heappush(self._due, (clock.due_at, clock.slo, clock.job))

    def stop(
        self, slo: int, job: str, at: float, tally: Tally, state: State, *, unless_at: str | None = None
    ) -> None:
        """Count it, unless it was late already; `unless_at` names a site where it does not count."""
        clock = self.running.pop((slo, job), None)
        if clock is None or (unless_at is not None and unless_at == clock.left_site):
            return
        if at - clock.began_at <= clock.within_seconds:
            tally.add(at, good=1.0)
        else:
            tally.add(clock.due_at, bad=1.0, reason=reason_of(state, job))

    def expire(self, at: float, tallies: list[Tally], state: State) -> None:
        """Count what is late by now and still waits; who gave up or was told to wait does not count."""
        while self._due and self._due[0][0] < at:
            due_at, slo, job_id = heapq.heappop(self._due)
            clock = self.running.get((slo, job_id))
            if clock is None or clock.due_at != due_at:
                continue
            del self.running[slo, job_id]
            job = state.jobs.get(job_id)
            if job is not None and _still_waits(job):
                tallies[slo].add(due_at, bad=1.0, reason=reason_of(state, job_id))


def _still_waits(job: Job) -> bool:
    return not job.asked and job.state not in ENDED and job.state is not JobState.RUNNING


def reason_of(state: State, job_id: str) -> str:
    """The rule that keeps a job waiting, or pressed it; of the first of its shape, if it was not tried."""
    job = state.jobs[job_id]
    verdict = dominant(job.verdicts)
    if verdict is None and job.state is JobState.WAITING:
        first = state.waiting[job.remainder.shape][0][2]
        verdict = dominant(state.jobs[first].verdicts)
    if verdict is not None:
        return verdict.rule
    return "starting" if job.state is JobState.STARTING else "not judged"
