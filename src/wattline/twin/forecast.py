"""Forecast: when will each job that waits start?

The queue is played through from where the state stands, on the twin, by the very step and decisions of the
live loop; one run serves all jobs. How long each still takes, given how long it has run, is drawn anew for
each future, and so is what may come meanwhile: hours of the last day, where at least one was seen. Many
futures give the time before which half of them, and nine in ten, have started a job.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from wattline.control import step
from wattline.spec.policy import Policy
from wattline.state import (
    BEGINNINGS,
    Decision,
    Event,
    Expected,
    Forecasted,
    Forgotten,
    Job,
    JobState,
    RunSubmitted,
    State,
    dump_state,
    load_state,
)
from wattline.twin.continuing import ContinuedWorld
from wattline.twin.lately import Lately, lately_of
from wattline.twin.remaining import Lasted, Phase, SecondsLeft, draw_seconds_left, gather_lasted, lasted_of
from wattline.twin.truth.lots import draw_lot
from wattline.twin.workload import Arrival, draw_utilisation
from wattline.units import SECONDS_PER_HOUR

# The first in line: of those far behind a forecast knows little, and the journal keeps every one.
MOST_JOBS = 1000
# The latest of so few futures is no ninth in ten.
_LEAST_FOR_P90 = 5
# Of this thread's processor, for one job of one future; measured on three-sites.
_SECONDS_FOR_A_JOB = 0.0008


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinForecaster:
    """Implements control.Forecaster. Bounded: what does not fit the budget is not played through."""

    samples: int = 16
    horizon_seconds: float = 7 * 24 * SECONDS_PER_HOUR
    budget_seconds: float = 1.0  # of this thread's processor
    seconds_left: SecondsLeft = draw_seconds_left
    lately: Lately | None = None  # None: what the state still knows

    def fits(self, state: State) -> bool:
        """Whether so many jobs can be played through often enough for nine in ten to mean something."""
        jobs = len(state.holding) + sum(map(len, state.waiting.values()))
        return _LEAST_FOR_P90 * jobs * _SECONDS_FOR_A_JOB <= self.budget_seconds

    def forecast(self, state: State, policy: Policy, at: float) -> Forecasted | None:
        awaited = [job.id for job in state.jobs.values() if job.will_start]
        return self._forecast(state, policy, at, awaited[:MOST_JOBS])

    def forecast_run(self, state: State, policy: Policy, submitted: RunSubmitted) -> Forecasted | None:
        """The same of a run that nobody has submitted yet, behind all that waits."""
        after = load_state(state.plant.facility, dump_state(state))
        after.fold([submitted])
        return self._forecast(after, policy, submitted.at, [request.job for request in submitted.jobs])

    def _forecast(self, state: State, policy: Policy, at: float, awaited: Sequence[str]) -> Forecasted | None:
        if not awaited:
            return None
        stop_at = time.thread_time() + self.budget_seconds
        beginning = _Beginning.of(state, at, self.lately)
        futures: list[_Future] = []
        while len(futures) < self.samples:
            future = self._play(beginning, policy, len(futures), awaited, stop_at)
            if not future.whole and futures:
                break
            futures.append(future)
            if not future.whole or time.thread_time() >= stop_at:
                break
        starts = _expect(awaited, futures)
        if not starts:
            return None
        return Forecasted(
            at=at, source="twin", starts=starts, samples=len(futures), horizon_seconds=self.horizon_seconds
        )

    def _play(
        self, beginning: _Beginning, policy: Policy, sample: int, awaited: Iterable[str], stop_at: float
    ) -> _Future:
        """One future, until all that wait have started, or as far as is looked."""
        state = load_state(beginning.state.plant.facility, beginning.data)

        def arrival_of(job: Job) -> Arrival:
            lot = 0.5 * (draw_lot(sample, f"left/{job.id}") + 1.0)
            others = lasted_of(job, beginning.state, beginning.lasted, beginning.lasted_by_gpus)
            return Arrival(
                at=job.submitted_at,
                request=job.request,
                work_seconds=self.seconds_left(job, beginning.at, lot, others, beginning.used_shares),
                utilisation=draw_utilisation(sample, job.id),
            )

        def arrivals() -> Iterator[Arrival]:
            for at, request in beginning.lately.arrivals(beginning.at, sample):
                yield arrival_of(Job(request=request, state=JobState.WAITING, submitted_at=at, since=at))

        world = ContinuedWorld(state, arrival_of, begins_at=beginning.at, arrivals=arrivals())
        ends_at = beginning.at + self.horizon_seconds
        waiting, starts = set(awaited), dict[str, float]()
        while True:
            decision = step(world, state, policy, _NO_JOURNAL)
            for action in decision.actions:
                if action.kind in BEGINNINGS and action.job in waiting:
                    waiting.discard(action.job)
                    starts[action.job] = decision.at
            if not waiting or world.now() >= ends_at:
                return _Future(starts, whole=True)
            if time.thread_time() >= stop_at:
                return _Future(starts, whole=False)
            world.sleep_until(ends_at if decision.revisit_at is None else min(decision.revisit_at, ends_at))


@dataclass(frozen=True, slots=True)
class _Beginning:
    """Where every future begins: a state as bytes, without runs that are over."""

    at: float
    state: State
    data: bytes
    lasted: dict[Phase, list[Lasted]]
    lasted_by_gpus: dict[int, list[Lasted]]
    used_shares: list[float]
    lately: Lately

    @staticmethod
    def of(state: State, at: float, lately: Lately | None) -> _Beginning:
        # What was read at this very moment would count as told already.
        at = math.nextafter(max(at, state.at), math.inf)
        kept = load_state(state.plant.facility, dump_state(state))
        kept.fold([Forgotten(at=state.at, runs=tuple(kept.runs))])  # those that still run stay
        kept.newcomers.clear()  # whether they are let in is asked by whoever wants this forecast
        known = lately_of(state) if lately is None else lately
        return _Beginning(
            at=at,
            state=kept,
            data=dump_state(kept),
            lasted=gather_lasted(state, at),
            lasted_by_gpus=known.lasted_by_gpus(state, at),
            used_shares=known.used_shares(),
            lately=known,
        )


@dataclass(frozen=True, slots=True)
class _Future:
    starts: dict[str, float]
    whole: bool  # False: the budget ended before it did


class _NoJournal:
    """What may happen is not written down."""

    def append(self, events: Sequence[Event], digest: Callable[[], str], decision: Decision) -> None:
        """Nobody will ask."""


_NO_JOURNAL = _NoJournal()


def _expect(awaited: Iterable[str], futures: Sequence[_Future]) -> tuple[Expected, ...]:
    """Of a future that was cut short only those are told that had started by then."""
    whole = all(future.whole for future in futures)
    found = []
    for job in awaited:
        starts = sorted([future.starts.get(job, math.inf) for future in futures])
        if whole or starts[0] < math.inf:
            p90_at = _percentile(starts, 0.9) if len(starts) >= _LEAST_FOR_P90 else None
            found.append(Expected(job, _percentile(starts, 0.5), p90_at))
    return tuple(found)


def _percentile(values: Sequence[float], share: float) -> float | None:
    """By nearest rank: a time that came up, None where that is beyond the horizon."""
    value = values[math.ceil(share * len(values)) - 1]
    return value if value < math.inf else None
