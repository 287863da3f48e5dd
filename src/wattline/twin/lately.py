"""Lately: what has come in the last days, and how long did what ended take?

A state that knows all its runs tells this at once. Where runs are forgotten when they end, it is kept from
the events as they pass.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import msgspec

from wattline.state import JobRequest, JobState, State
from wattline.twin.remaining import Lasted, worked_seconds
from wattline.twin.truth.lots import draw_lot
from wattline.units import SECONDS_PER_HOUR

# A day tells how its hours differ; what came before says less of what comes.
_HOURS = 24
_MOST_CAME = 20_000
# Jobs that began in these days tell how long jobs take.
_COHORT_SECONDS = 3 * 86400.0
_MOST_ENDED = 20_000
# Of as many GPUs: fewer that ended tell nothing; more are thinned, evenly by how long they lasted.
_LEAST_ENDED = 20
_MOST_TOLD = 200


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that succeeded."""

    gpus: int
    began_at: float
    ended_at: float
    seconds: float  # of work, all attempts together
    limit_seconds: float | None = None


@dataclass(slots=True)
class Lately:
    """In the order of time; bounded."""

    came: deque[tuple[float, JobRequest]] = field(default_factory=lambda: deque(maxlen=_MOST_CAME))
    ended: deque[Ended] = field(default_factory=lambda: deque(maxlen=_MOST_ENDED))
    since: float = math.inf  # when this began to be kept

    def come(self, at: float, request: JobRequest) -> None:
        self.since = min(self.since, at)
        self.came.append((at, request))

    def arrivals(self, at: float, sample: int) -> Iterator[tuple[float, JobRequest]]:
        """What may come: hours of the last day, drawn one after the other, with all that came in them.

        Nothing where less than an hour was seen.
        """
        hours = min(_HOURS, int((at - self.since) / SECONDS_PER_HOUR)) if self.since < at else 0
        began_at = at - hours * SECONDS_PER_HOUR
        by_hour: list[list[tuple[float, JobRequest]]] = [[] for _ in range(hours)]
        for came_at, request in self.came:
            hour = int((came_at - began_at) // SECONDS_PER_HOUR)
            if 0 <= hour < hours:
                by_hour[hour].append((came_at - began_at - hour * SECONDS_PER_HOUR, request))
        if not any(by_hour):
            return
        number = 0
        for later in count():
            hour_at = at + later * SECONDS_PER_HOUR
            lot = 0.5 * (draw_lot(sample, f"hour/{later}") + 1.0)
            for offset, request in by_hour[min(hours - 1, int(lot * hours))]:
                number += 1
                run = f"may-come-{number}"
                yield (
                    hour_at + offset,
                    msgspec.structs.replace(request, run=run, job=f"{run}/{request.phase}", after=()),
                )

    def lasted_by_gpus(self, state: State, at: float) -> dict[int, list[Lasted]]:
        """Of jobs that began lately, those that ended and those that go on; the shortest first."""
        # Of what began before the oldest that is kept had ended, some that ended are no longer known.
        full = len(self.ended) == self.ended.maxlen
        since = max(at - _COHORT_SECONDS, self.ended[0].ended_at if full else -math.inf)
        found: dict[int, list[Lasted]] = {}
        for ended in self.ended:
            if ended.began_at >= since:
                found.setdefault(ended.gpus, []).append(Lasted(ended.seconds))
        told = {gpus for gpus, lasted in found.items() if len(lasted) >= _LEAST_ENDED}
        for job_id in state.holding:
            job = state.jobs[job_id]
            began_at = job.first_started_at
            if job.request.gpus in told and began_at is not None and began_at >= since:
                found[job.request.gpus].append(Lasted(worked_seconds(job, at), goes_on=True))
        return {gpus: _thinned(sorted(lasted)) for gpus, lasted in found.items() if gpus in told}

    def used_shares(self) -> list[float]:
        """Of the longest that they might have run, what jobs used; the least first."""
        shares = [
            min(1.0, ended.seconds / ended.limit_seconds) for ended in self.ended if ended.limit_seconds
        ]
        return sorted(shares) if len(shares) >= _LEAST_ENDED else []


def lately_of(state: State) -> Lately:
    """From all jobs that a state still knows."""
    lately = Lately()
    jobs = state.jobs.values()
    for job in sorted(jobs, key=lambda job: (job.submitted_at, job.id)):
        lately.come(job.submitted_at, job.request)
    over = [job for job in jobs if job.state is JobState.SUCCEEDED and job.ended_at is not None]
    for job in sorted(over, key=lambda job: (job.ended_at, job.id)):
        if job.first_started_at is not None and job.ended_at is not None:
            seconds, limit = worked_seconds(job, job.ended_at), job.request.max_duration_seconds
            lately.ended.append(Ended(job.request.gpus, job.first_started_at, job.ended_at, seconds, limit))
    return lately


def _thinned(lasted: list[Lasted]) -> list[Lasted]:
    if len(lasted) <= _MOST_TOLD:
        return lasted
    return [lasted[(2 * rank + 1) * len(lasted) // (2 * _MOST_TOLD)] for rank in range(_MOST_TOLD)]
