"""Accuracy: how good have estimates of this pipeline been, and how should the next be corrected?

Every recorded run is estimated again from those that had ended when it was submitted, and from nothing else.
Where the ninth in ten covered too little or too much lately, the quantile that is asked for moves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wattline.checks.estimate.costing import price_phase
from wattline.checks.estimate.durations import Lasting, combine, predict_lasting
from wattline.checks.estimate.records import Record, RecordedRun
from wattline.checks.report import Confidence
from wattline.state import JobRequest, Plant
from wattline.twin.experience import Level

_LATELY = 20  # runs that are looked back on
_LEAST_LOOKED_BACK = 3
# Runs of one pipeline are few: each says more than one job among thousands.
_LEARNING, _LEVELS = 0.03, (0.8, 0.98)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One run: what was expected of it, and what it took."""

    run: str
    earlier: int  # runs that it was estimated from
    expected_usd: float
    usd: float
    expected: Lasting
    seconds: float

    @property
    def error(self) -> float | None:
        """As a fraction of what it cost; None where it cost nothing."""
        return abs(self.expected_usd - self.usd) / self.usd if self.usd > 0.0 else None

    @property
    def covered(self) -> bool:
        return self.expected.p90_seconds is not None and self.seconds <= self.expected.p90_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    compared: tuple[Compared, ...]
    level: float  # to ask for, so that nine in ten are covered
    confidence: Confidence
    say: str  # why something is not known; empty: it is


def look_back(runs: Sequence[RecordedRun], plant: Plant) -> Accuracy:
    """Over the runs of one pipeline, in any order."""
    level, compared = Level(_LEARNING, _LEVELS), list[Compared]()
    unlearnt: list[tuple[float, bool]] = []  # when it ended, and whether it was covered
    for run in sorted(runs, key=lambda run: (run.submitted_at, run.run)):
        unlearnt = _learn(level, unlearnt, run.submitted_at)
        earlier = [one for one in runs if one.ended_at <= run.submitted_at]
        found = _compare(run, earlier, plant, level.value)
        if found is not None:
            compared.append(found)
            unlearnt.append((run.ended_at, found.covered))
    _learn(level, unlearnt, math.inf)
    lately = compared[-_LATELY:]
    errors = [one.error for one in lately if one.error is not None]
    enough = len(lately) >= _LEAST_LOOKED_BACK
    confidence = Confidence(
        runs=len(lately),
        cost_mape=sum(errors) / len(errors) if enough and errors else None,
        covered=sum(one.covered for one in lately) / len(lately) if enough else None,
    )
    missing = f"only {len(lately)} of {_LEAST_LOOKED_BACK} runs have others before them to compare with"
    return Accuracy(
        compared=tuple(compared), level=level.value, confidence=confidence, say="" if enough else missing
    )


def _learn(level: Level, unlearnt: list[tuple[float, bool]], at: float) -> list[tuple[float, bool]]:
    """What had ended by then is learnt; the rest is given back."""
    for ended_at, covered in sorted(unlearnt):
        if ended_at <= at:
            level.learn(missed=not covered)
    return [(ended_at, covered) for ended_at, covered in unlearnt if ended_at > at]


def _compare(run: RecordedRun, earlier: Sequence[RecordedRun], plant: Plant, level: float) -> Compared | None:
    """None where nothing of it was known before."""
    lastings: dict[str, Lasting] = {}
    usd = 0.0
    for record in run.records:
        known = [past for one in earlier for past in one.records if past.phase == record.phase]
        if not known or record.place is None:
            return None
        request = JobRequest(
            job=f"{run.run}/{record.phase}", run=run.run, phase=record.phase, gpus=record.gpus
        )
        lasting = predict_lasting(request, known, at=run.submitted_at, steps=record.steps, level=level)
        lastings[record.phase] = lasting
        usd += price_phase(request, lasting, known, plant=plant, place=record.place).cost.total or 0.0
    expected, took = (
        _through(run, lastings),
        _through(run, {one.phase: _as_it_was(one) for one in run.records}),
    )
    return Compared(
        run=run.run,
        earlier=len(earlier),
        expected_usd=usd,
        usd=run.usd,
        expected=expected,
        seconds=took.p50_seconds or 0.0,
    )


def _through(run: RecordedRun, lastings: dict[str, Lasting]) -> Lasting:
    return combine(lastings, run.after, [record.phase for record in run.records])


def _as_it_was(record: Record) -> Lasting:
    return Lasting(p50_seconds=record.seconds, p90_seconds=record.seconds)
