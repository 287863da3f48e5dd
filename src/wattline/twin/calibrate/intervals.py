"""Intervals: how far can an estimate be trusted, when neighbouring errors are alike and chips differ?

Readings of a slow thing repeat each other: a die that sits at 63.4 °C reads 63 for an hour, and that is one
error and not 3,600. So variances are multiplied by how many readings say the same thing, from the
autocorrelation of what is left over (Geyer's initial positive sequence). Where no formula fits, blocks of
neighbours are drawn again with a seeded generator, for the same reason. Devices of one model are a sample of
it: their estimates are joined with random effects (DerSimonian and Laird; Hartung and Knapp for the width),
on a logarithmic scale because all that is fitted here is positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wattline.twin.calibrate.series import Array, dot

_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
_NORMAL = 1.959964
_BLOCKS = 20
_DRAWS = 200
_MOST_DRAWN_FROM = 20_000
# Nothing here is known better than this, whatever readings without any noise seem to say.
_LEAST_RELATIVE_ERROR = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One thing's figure with its standard error, and how many free readings that error comes from."""

    value: float
    error: float
    freedom: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    estimate: float
    low: float
    high: float


def student(freedom: float) -> float:
    """Half the width of a 95 % interval in standard errors: from a table, beyond it by Cornish and Fisher."""
    if freedom < len(_STUDENT) + 1:
        return _STUDENT[max(0, int(freedom) - 1)]
    z = _NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def repetition(residuals: Array) -> float:
    """How many readings in a row say the same thing: 1 where each is new."""
    n = len(residuals)
    centred = residuals - residuals.mean()
    power = dot(centred, centred)
    if n < 4 or power <= 0.0:
        return 1.0
    spectrum = np.fft.rfft(centred, 2 * n)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[:n] / power
    pairs = correlation[1 : n - n % 2 - 1].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    return max(1.0, 1.0 + 2.0 * float(pairs[: ends[0] if len(ends) else None].sum()))


def resample(values: Array, statistic: Callable[[Array], float]) -> Estimate:
    """A statistic of readings in order, with its error from blocks of neighbours drawn again."""
    thinned = values[:: max(1, math.ceil(len(values) / _MOST_DRAWN_FROM))]
    blocks = np.array_split(thinned, min(_BLOCKS, len(thinned)))
    generator = np.random.default_rng(0)
    drawn = [
        statistic(
            np.concatenate([blocks[block] for block in generator.integers(len(blocks), size=len(blocks))])
        )
        for _ in range(_DRAWS)
    ]
    return Estimate(value=statistic(thinned), error=float(np.std(drawn, ddof=1)), freedom=len(blocks) - 1)


def join(estimates: Sequence[Estimate]) -> Interval:
    """What several devices say together about their model; every value is above zero."""
    logs = np.log([each.value for each in estimates])
    errors = np.maximum(_LEAST_RELATIVE_ERROR, [each.error / each.value for each in estimates])
    weights = 1.0 / errors**2
    centre = float(weights @ logs / weights.sum())
    others = len(estimates) - 1
    unlike = float(weights @ (logs - centre) ** 2)
    if unlike <= others or others == 0:
        width = student(sum(each.freedom for each in estimates)) / math.sqrt(weights.sum())
        return _around(centre, width)
    between = (unlike - others) / float(weights.sum() - (weights**2).sum() / weights.sum())
    weights = 1.0 / (errors**2 + between)
    centre = float(weights @ logs / weights.sum())
    spread = float(weights @ (logs - centre) ** 2) / others
    return _around(centre, student(others) * math.sqrt(max(spread, 1.0) / weights.sum()))


def _around(centre: float, width: float) -> Interval:
    # Beyond a factor of e^20 either way nothing is known; keep it a number.
    width = min(width, 20.0)
    return Interval(estimate=math.exp(centre), low=math.exp(centre - width), high=math.exp(centre + width))
