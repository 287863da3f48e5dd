"""Synthetic: which jobs does a workload mean that was described and not recorded?

Sizes are drawn from a list, run times so that each doubling is as likely as the next, arrivals at random with
a mean rate, how hard a job works and how often it saves evenly from a span. The same seed gives the same
jobs, whatever policy meets them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

import msgspec

from wattline.errors import UsageError
from wattline.spec.scenario import Workload
from wattline.twin.traces import TraceJob
from wattline.twin.workload import Arrival
from wattline.units import SECONDS_PER_HOUR

# What fills the facility comes over this long, so that checkpoints do not fall together.
_FILLING_SECONDS = 0.5 * SECONDS_PER_HOUR
_MOST_JOBS = 1_000_000
_LONGEST_TIMES = 1.1


@dataclass(frozen=True, slots=True)
class _Coming:
    at_seconds: float
    gpus: int
    runs_seconds: float


def make_jobs(workload: Workload, gpus: int, lasts_seconds: float, seed: int) -> tuple[TraceJob, ...]:
    """The jobs that come to a facility of so many GPUs in this time."""
    draw = Random(f"workload/{seed}")  # noqa: S311 - runs must repeat
    coming = list(islice(_coming(workload, gpus, lasts_seconds, draw), _MOST_JOBS + 1))
    if len(coming) > _MOST_JOBS:
        raise UsageError(
            f"workload: more than {_MOST_JOBS:,} jobs would come", hint="let fewer come, or for less long"
        )
    coming.sort(key=lambda one: one.at_seconds)
    return tuple(
        TraceJob(
            name=f"made-{number}",
            arrives_seconds=one.at_seconds,
            gpus=one.gpus,
            work_seconds=one.runs_seconds,
        )
        for number, one in enumerate(coming, 1)
    )


def drive(arrivals: Iterable[Arrival], workload: Workload, seed: int) -> Iterator[Arrival]:
    """The same jobs, working as hard and saving as often as the workload says, where it does.

    Each has lots of its own, so one job more or less changes no other.
    """
    for arrival in arrivals:
        draw = Random(f"drive/{seed}/{arrival.request.run}")  # noqa: S311 - runs must repeat
        lots = draw.random(), draw.random()
        if workload.deadlines is not None or workload.burst:
            arrival = _promised(arrival, workload, draw.random())
        yield msgspec.structs.replace(
            arrival,
            utilisation=_between(workload.utilisation, lots[0], arrival.utilisation),
            saved_every_seconds=_between(workload.saves, lots[1], arrival.saved_every_seconds),
        )


def _promised(arrival: Arrival, workload: Workload, lot: float) -> Arrival:
    """With a deadline, and the longest a job may run: as it says, or a tenth more than it takes."""
    longest = arrival.request.max_duration_seconds or _LONGEST_TIMES * arrival.work_seconds
    times = _between(workload.deadlines, lot, 0.0)
    deadline_at = arrival.at + times * arrival.work_seconds if workload.deadlines else None
    request = msgspec.structs.replace(
        arrival.request,
        deadline_at=deadline_at,
        max_duration_seconds=longest if workload.deadlines else arrival.request.max_duration_seconds,
        burst=workload.burst,
        brings_back_bytes=arrival.saved_bytes
        if workload.burst
        else 0.0,  # what it made is its last checkpoint
    )
    return msgspec.structs.replace(arrival, request=request)


def _between(span: tuple[float, float] | None, lot: float, otherwise: float) -> float:
    return otherwise if span is None else span[0] + lot * (span[1] - span[0])


def _coming(workload: Workload, gpus: int, lasts_seconds: float, draw: Random) -> Iterator[_Coming]:
    assert workload.runs is not None  # the document says so where it names no trace
    shortest, longest = workload.runs
    asked = 0
    while (size := draw.choice(workload.gpus)) + asked <= workload.filled * gpus:
        asked += size
        # Met under way: a long run is met more often than a short one, and some part of it is left.
        left_seconds = draw.uniform(shortest, longest) * (1.0 - draw.random())
        yield _Coming(draw.uniform(0.0, min(_FILLING_SECONDS, lasts_seconds)), size, left_seconds)
    for at_seconds in _moments(workload, lasts_seconds, draw):
        runs_seconds = math.exp(draw.uniform(math.log(shortest), math.log(longest)))
        yield _Coming(at_seconds, draw.choice(workload.gpus), runs_seconds)


def _moments(workload: Workload, lasts_seconds: float, draw: Random) -> Iterator[float]:
    """When new ones arrive: at random with their mean rate, and in bursts."""
    at_seconds = 0.0
    while workload.arrivals_per_hour > 0.0:
        at_seconds += draw.expovariate(workload.arrivals_per_hour / SECONDS_PER_HOUR)
        if at_seconds >= lasts_seconds:
            break
        yield at_seconds
    for burst in workload.bursts:
        for _ in range(burst.jobs):
            yield (burst.at.after or 0.0) + draw.uniform(0.0, burst.within)
