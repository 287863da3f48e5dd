"""Foresight: what is a job told of when it will start, and was that right?

A queue that can be played through on the twin in time is. A longer one is laid out where all say how long
they take, and else told by how fast its lines move; both cost little, so that a job is told the moment it
arrives. Where all say how long they take, a job is also pledged a time. Every answer is corrected by how
wrong such answers were. What is needed for that is heard from events; hearing a journal again leads to the
same.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice

from wattline.spec.policy import Policy
from wattline.state import (
    AttemptEnded,
    AttemptStarted,
    Ending,
    Event,
    Expected,
    Forecasted,
    Forgotten,
    Job,
    JobRequest,
    RunSubmitted,
    State,
    waiting_key,
)
from wattline.twin.forecast import MOST_JOBS, TwinForecaster
from wattline.twin.lately import Ended, Lately
from wattline.twin.lines import Lines
from wattline.twin.milestones import Milestones
from wattline.twin.recalibrating import P90_SPREADS, SPREAD, Kind, Recalibration, Wait
from wattline.twin.slots import Slots, all_say

PLAYED, LINES, SLOTS = "twin", "lines", "slots"
# Jobs of one GPU start in turn, save for who goes before them; more GPUs must also come together somewhere.
# These spreads were chosen at arrival scales 4.2, 5.5 and 7 of Philly.
_SPREADS: dict[Kind, float] = {(SLOTS, 0): 0.3, (SLOTS, 1): 0.9, (SLOTS, 2): 0.9, (SLOTS, 3): 0.9}
_MOST_SIZES = 3  # jobs of eight GPUs and more err alike
_LAYOUT_SECONDS = 1200.0  # who goes behind all others is put behind a layout that is no older
# An attempt that ended so will be followed by another.
_GOES_ON = (Ending.PAUSED, Ending.LOST, Ending.NOT_STARTED)


@dataclass(slots=True)
class _Known:
    """A job that has not ended."""

    request: JobRequest
    first_began_at: float | None = None
    began_at: float | None = None
    worked_seconds: float = 0.0


@dataclass(slots=True)
class Foresight:
    """Implements control.Forecaster; hears every event of the loop, once and in order."""

    played: TwinForecaster = field(default_factory=TwinForecaster)
    lately: Lately = field(default_factory=Lately)
    _lines: Lines = field(default_factory=Lines)
    _recalibration: Recalibration = field(default_factory=lambda: Recalibration(_SPREADS))
    _jobs: dict[str, _Known] = field(default_factory=dict)
    _runs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _milestones: Milestones = field(default_factory=Milestones)
    _unsaid: int = 0  # jobs that do not say how long they take
    _slots: tuple[float, Slots | None] = (-math.inf, None)  # since when

    def hear(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, RunSubmitted):
                self._runs[event.run] = tuple([request.job for request in event.jobs])
                for request in event.jobs:
                    self._drop(request.job)
                    self._jobs[request.job] = _Known(request)
                    self._milestones.come(request.job, request.shape)
                    self._unsaid += request.max_duration_seconds is None
                    self.lately.come(event.at, request)
            elif isinstance(event, AttemptStarted):
                self._begin(event)
            elif isinstance(event, AttemptEnded):
                self._end(event)
            elif isinstance(event, Forecasted):
                self._tell(event)
            elif isinstance(event, Forgotten):
                self._forget(event)

    def forecast(self, state: State, policy: Policy, at: float) -> Forecasted | None:
        """Of all that waits, the first in line where that is too much."""
        if self.played.fits(state):
            found = replace(self.played, lately=self.lately).forecast(state, policy, at)
            return None if found is None else self._corrected(found, pledge=all_say(state))
        self._slots = (-math.inf, None)
        starts = [
            self.expect(state, policy, state.jobs[job_id], at)
            for queue in state.waiting.values()
            for _, _, job_id in islice(queue, MOST_JOBS)
            if state.jobs[job_id].will_start
        ]
        starts.sort(key=lambda expected: (expected.p50_at or at, expected.job))
        return self.told(tuple(starts[:MOST_JOBS]), at) if starts else None

    def expect(self, state: State, policy: Policy, job: Job, at: float) -> Expected:
        """Of one that stands in line or has just come, by its turn or by how fast its line moves."""
        slots = self._layout(state, policy, job, at)
        if slots is not None:
            kind, seconds = _slot_kind(job.request), max(1.0, slots.start_of(job) - at)
            raw = Wait(seconds, seconds * math.exp(P90_SPREADS * _SPREADS.get(kind, SPREAD)))
            return self._expected(job.id, kind, at, raw, pledge=True)
        shape = job.remainder.shape
        queue = state.waiting[shape]
        place = 1 + bisect_left(queue, waiting_key(job))
        raw = self._lines.expect(shape, place, at, state.jobs[queue[0][2]].since)
        return self._expected(job.id, (LINES,), at, raw, pledge=False)

    def _layout(self, state: State, policy: Policy, job: Job, at: float) -> Slots | None:
        """Where this job stands among all others; None where one of them does not say how long it takes."""
        if self._unsaid or not job.request.gpus:
            return None
        found_at, slots = self._slots
        if not 0.0 <= at - found_at <= _LAYOUT_SECONDS or (slots is not None and not slots.places(job)):
            slots = Slots(state, policy, at, self.lately) if all_say(state) else None
            self._slots = (at, slots)
        return slots

    def told(self, starts: tuple[Expected, ...], at: float) -> Forecasted:
        """What `expect` said, as an event."""
        source = LINES if all(expected.by_at is None for expected in starts) else SLOTS
        return Forecasted(
            at=at, source=source, starts=starts, samples=0, horizon_seconds=self.played.horizon_seconds
        )

    def _corrected(self, found: Forecasted, *, pledge: bool) -> Forecasted:
        starts = []
        for raw in found.starts:
            if raw.p50_at is None or raw.p90_at is None:
                starts.append(raw)
                continue
            played = Wait(raw.p50_at - found.at, raw.p90_at - found.at)
            starts.append(self._expected(raw.job, (PLAYED,), found.at, played, pledge=pledge))
        return Forecasted(
            at=found.at,
            source=found.source,
            starts=tuple(starts),
            samples=found.samples,
            horizon_seconds=found.horizon_seconds,
        )

    def _begin(self, event: AttemptStarted) -> None:
        self._recalibration.begin(event.job, event.at)
        for other, share in self._milestones.leave(event.job):
            self._recalibration.half_way(other, event.at, share)
        known = self._jobs.get(event.job)
        if known is None:
            return
        known.began_at = event.at
        known.first_began_at = event.at if known.first_began_at is None else known.first_began_at
        self._lines.begin(known.request.shape, event.at)

    def _end(self, event: AttemptEnded) -> None:
        known = self._jobs.get(event.job)
        if known is None:
            return
        if known.began_at is not None:
            known.worked_seconds += event.at - known.began_at
            known.began_at = None
        if event.ending in _GOES_ON:
            return
        request, began_at = known.request, known.first_began_at
        if event.ending is Ending.SUCCEEDED and began_at is not None:
            self.lately.ended.append(
                Ended(request.gpus, began_at, event.at, known.worked_seconds, request.max_duration_seconds)
            )
        if event.ending is not Ending.FAILED:  # it may be tried again
            self._drop(event.job)

    def _tell(self, event: Forecasted) -> None:
        for told in event.starts:
            if told.raw_p50_at is not None and told.raw_p90_at is not None:
                raw = Wait(told.raw_p50_at - event.at, told.raw_p90_at - event.at)
                kind: Kind = (event.source,)
                if event.source == SLOTS:
                    known = self._jobs.get(told.job)
                    pledged = known is not None and told.by_at is not None
                    kind = _slot_kind(known.request) if known and pledged else (LINES,)
                is_first = self._recalibration.tell(told.job, kind, event.at, raw)
                if is_first and kind == (LINES,):
                    self._milestones.tell(told.job)

    def _forget(self, event: Forgotten) -> None:
        for run in event.runs:
            for job in self._runs.pop(run, ()):
                self._drop(job)

    def _drop(self, job: str) -> None:
        known = self._jobs.pop(job, None)
        if known is not None:
            self._unsaid -= known.request.max_duration_seconds is None
        self._recalibration.drop(job)
        for _ in self._milestones.leave(job):  # at a time nobody knows here: it tells nothing
            pass

    def _expected(self, job: str, kind: Kind, at: float, raw: Wait, *, pledge: bool) -> Expected:
        wait = self._recalibration.correct(kind, raw)
        return Expected(
            job,
            at + wait.p50_seconds,
            at + wait.p90_seconds,
            at + raw.p50_seconds,
            at + raw.p90_seconds,
            at + wait.pledge_seconds if pledge else None,
        )


def _slot_kind(request: JobRequest) -> Kind:
    """Jobs of as many GPUs, about, err alike."""
    return (SLOTS, min(_MOST_SIZES, max(1, request.gpus).bit_length() - 1))
