"""Fitting: what do a phase's recorded runs say of one with other steps, or other GPUs?

Time is a part that comes once and a part for each step (Theil 1950 and Sen 1968: medians of slopes, so that
one disturbed run moves little). What remains is taken as log-normal. Few runs leave a wide answer: a usual
spread counts as two runs, and Student's factor does the rest. Recent runs count most: code changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from wattline.checks.estimate.records import Record

_FADING = 0.9  # weight of a run, when the next has ended
_MOST_RUNS = 50
# Before anything is known: runs of one phase differ by a quarter; assumed.
_USUAL_SPREAD, _USUAL_RUNS = 0.25, 2.0
# With a fixed batch, each doubling of GPUs is 87 % as good as it could be; assumed.
_GPU_EXPONENT = 0.9
# How much of a change in scale stays unsure; assumed.
_STEPS_DOUBT, _GPUS_DOUBT = 0.25, 0.3
# So many with as many GPUs need no others.
_ENOUGH_ALIKE = 3
_LEAST_SECONDS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A log-normal time, with what makes it wider."""

    p50_seconds: float
    spread: float  # of the logarithm
    freedom: float  # how many runs stand behind the spread
    scaled: tuple[str, ...]  # by what it differs from those that were recorded

    def quantile_seconds(self, level: float) -> float:
        return self.p50_seconds * math.exp(max(0.0, student(level, self.freedom)) * self.spread)


def fit_records(records: Sequence[Record], steps: int | None, gpus: int) -> Fitted:
    """At least one record. Steps that are not known change nothing."""
    alike = _alike([record for record in records if record.seconds > 0.0] or records, gpus)
    counted = [record for record in alike if record.steps] if steps else []
    chosen = counted or alike
    weights = [_FADING ** (len(chosen) - 1 - number) for number in range(len(chosen))]
    seconds = [max(_LEAST_SECONDS, record.seconds * _gpu_factor(record.gpus, gpus)) for record in chosen]
    done = [float(record.steps or 0) for record in chosen] if counted else [0.0] * len(chosen)
    once, each = _line(done, seconds, weights)
    logs = [math.log(taken / (once + each * count)) for taken, count in zip(seconds, done, strict=True)]
    middle = weighted_median(logs, weights)
    weight = sum(weights)
    squares = sum(w * (log - middle) ** 2 for log, w in zip(logs, weights, strict=True))
    freedom = _USUAL_RUNS + weight - 1.0
    variance = (_USUAL_RUNS * _USUAL_SPREAD**2 + squares) / freedom * (1.0 + 1.0 / weight)
    wanted = float(steps or 0) if counted else 0.0
    stretch = min(abs(math.log(wanted / count)) for count in done) if counted else 0.0
    regrouped = min(abs(_log_ratio(record.gpus, gpus)) for record in chosen)
    variance += (_STEPS_DOUBT * stretch) ** 2 + (_GPUS_DOUBT * regrouped) ** 2
    scaled = [f"{steps} steps"] if stretch else []
    scaled += [f"{gpus} GPUs"] if regrouped else []
    return Fitted(
        p50_seconds=(once + each * wanted) * math.exp(middle),
        spread=math.sqrt(variance),
        freedom=freedom,
        scaled=tuple(scaled),
    )


def _alike(records: Sequence[Record], gpus: int) -> Sequence[Record]:
    same = [record for record in records if record.gpus == gpus]
    return (same if len(same) >= _ENOUGH_ALIKE else records)[-_MOST_RUNS:]


def _log_ratio(had: int, gpus: int) -> float:
    return math.log(had / gpus) if had and gpus else 0.0


def _gpu_factor(had: int, gpus: int) -> float:
    return math.exp(_GPU_EXPONENT * _log_ratio(had, gpus))


def _line(done: Sequence[float], seconds: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """Seconds once and for each step, neither below zero."""
    if not any(done):
        return weighted_median(seconds, weights), 0.0
    slopes, slope_weights = [], []
    for later in range(len(done)):
        for earlier in range(later):
            steps = done[later] - done[earlier]
            if steps:
                slopes.append((seconds[later] - seconds[earlier]) / steps)
                slope_weights.append(weights[later] * weights[earlier] * abs(steps))
    each = weighted_median(slopes, slope_weights) if slopes else -1.0
    if each >= 0.0:
        once = weighted_median(
            [taken - each * count for taken, count in zip(seconds, done, strict=True)], weights
        )
        if once >= 0.0 and once + each * min(done) > 0.0:
            return once, each
    rates = [taken / count for taken, count in zip(seconds, done, strict=True)]
    return 0.0, weighted_median(rates, weights)


def weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """Half of the weight lies on either side; between two values where it lies evenly."""
    ordered = sorted(zip(values, weights, strict=True))
    half, passed = 0.5 * sum(weights), 0.0
    for number, (value, weight) in enumerate(ordered):
        passed += weight
        if math.isclose(passed, half) and number + 1 < len(ordered):
            return 0.5 * (value + ordered[number + 1][0])
        if passed > half:
            return value
    return ordered[-1][0]


def student(level: float, freedom: float) -> float:
    """Student's quantile, by the first terms of its series around the normal one.

    Abramowitz and Stegun 26.7.5; at 0.9 and two degrees of freedom it is 2 % short.
    """
    z = NormalDist().inv_cdf(level)
    first = (z**3 + z) / (4.0 * freedom)
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / (96.0 * freedom**2)
    return z + first + second
