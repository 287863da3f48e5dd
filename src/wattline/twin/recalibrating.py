"""Recalibrating: how far were forecasts off, and what does that make of the next one?

Every wait that ends is held against the first forecast of it, as a ratio, and so is one that is known to be
through in part (`milestones.py`). What is forecast next is stretched by the ratio that half of those stayed
below, and its upper end by the one that nine in ten did (conformalised quantiles, Romano et al. 2019). Waits
that overlap err together: a wait weighs as much as its share of those that were open when it ended, so that a
whole queue that passes weighs about as much as one job that waits alone. The past fades by the same measure,
and an assumed spread always counts for a few.

All that is learnt comes from events, in their order: hearing a journal again leads to the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Kind = tuple[Hashable, ...]  # of a forecast: errors of one kind are alike

# A bin of the ratio's logarithm is 5 % wide; the widest is e⁶, four hundred times too early or too late.
_WIDTH, _WIDEST = 0.05, 6.0
_POINTS = np.arange(-_WIDEST, _WIDEST + _WIDTH / 2, _WIDTH)
# Of the logarithm, assumed; what that weighs; after which weight the past has faded to a third. Chosen at
# arrival scales 4.2, 5.5 and 7 of Philly; the figures of bench.eta are of 4.5, 5 and 6.
SPREAD = 0.55
P90_SPREADS = 1.2816  # from the median of a normal distribution
P90_OVER_P50 = math.exp(P90_SPREADS * SPREAD)
# A median is known from fewer waits than a ninth in ten, so what is assumed of it weighs less.
_P50_WEIGHT, _P90_WEIGHT = 5.0, 8.0
_FADES_AFTER = 5.0
# What is pledged is to be kept to nineteen in twenty on bad days too, when errors are worse than they were:
# the least that was, of any 3,000 jobs in a row, at arrival scales 4.2, 4.8, 5.5, 6.5 and 7.
_PLEDGE = 0.98
_LEAST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Wait:
    """From the forecast on: as likely shorter as longer; shorter nine times in ten; nearly always."""

    p50_seconds: float
    p90_seconds: float
    pledge_seconds: float = math.nan


class Recalibration:
    """Told of forecasts as they were before correction, and of starts."""

    def __init__(self, spreads: Mapping[Kind, float] | None = None) -> None:
        self._spreads = spreads or {}  # by kind, where another is assumed
        self._errors: dict[Kind, tuple[_Errors, _Errors]] = {}
        self._open: dict[str, tuple[Kind, float, Wait]] = {}
        self._open_of_kind: Counter[Kind] = Counter()

    def correct(self, kind: Kind, wait: Wait) -> Wait:
        seen = self._errors.get(_situation(kind, wait))
        errors = seen or self._unknown(kind)
        # Before anything was seen it is told to the second: it may be when a week ends, and not a bin before.
        p50 = wait.p50_seconds * (errors[0].ratio(0.5) if seen else 1.0)
        p90 = max(p50, wait.p90_seconds * (errors[1].ratio(0.9) if seen else 1.0))
        return Wait(p50, p90, max(p90, wait.p90_seconds * errors[1].ratio(_PLEDGE)))

    def tell(self, job: str, kind: Kind, at: float, wait: Wait) -> bool:
        """A wait was forecast; only the first of each is held against what comes. Whether it is the first."""
        if job in self._open:
            return False
        self._open[job] = (_situation(kind, wait), at, wait)
        self._open_of_kind[self._open[job][0]] += 1
        return True

    def half_way(self, job: str, at: float, share: float) -> None:
        """A job has waited for such a share of its wait, and waits on."""
        told = self._open.get(job)
        if told is not None:
            self._learn(*told, at, share)

    def begin(self, job: str, at: float) -> None:
        told = self.drop(job)
        if told is not None:
            self._learn(*told, at)

    def _learn(self, kind: Kind, told_at: float, wait: Wait, at: float, share: float = 1.0) -> None:
        weight = 1.0 / (1 + self._open_of_kind[kind])
        errors = self._errors.get(kind)
        if errors is None:
            errors = self._errors[kind] = self._unknown(kind[:-1])
        waited = max(_LEAST_SECONDS, (at - told_at) / share)
        errors[0].add(waited / max(_LEAST_SECONDS, wait.p50_seconds), weight)
        errors[1].add(waited / max(_LEAST_SECONDS, wait.p90_seconds), weight)

    def drop(self, job: str) -> tuple[Kind, float, Wait] | None:
        """It waits no longer; where it will never start, nothing is learnt of it."""
        told = self._open.pop(job, None)
        if told is not None:
            self._open_of_kind[told[0]] -= 1
        return told

    def _unknown(self, kind: Kind) -> tuple[_Errors, _Errors]:
        """Where nothing was seen a forecast is taken as right: half stay below p50, nine in ten below p90."""
        spread = self._spreads.get(kind, SPREAD)
        p90 = _Errors(-P90_SPREADS * spread, spread, _P90_WEIGHT)
        return _Errors(0.0, spread, _P50_WEIGHT), p90


def _situation(kind: Kind, wait: Wait) -> Kind:
    """Those who wait for seconds, minutes, hours or days wait for other things, and err otherwise."""
    return (*kind, int(math.log10(max(_LEAST_SECONDS, wait.p50_seconds))))


class _Errors:
    """What came by what was forecast, as a histogram of logarithms in which the past fades."""

    __slots__ = ("_assumed", "_known", "_seen")

    def __init__(self, median: float, spread: float, weight: float) -> None:
        assumed = np.exp(-0.5 * ((_POINTS - median) / spread) ** 2)
        self._assumed: NDArray[np.float64] = assumed * (weight / assumed.sum())
        self._seen = np.zeros(len(_POINTS))
        self._known: dict[float, float] = {}

    def add(self, ratio: float, weight: float) -> None:
        log = min(max(math.log(ratio), -_WIDEST), _WIDEST)
        self._seen *= math.exp(-weight / _FADES_AFTER)
        self._seen[round((log + _WIDEST) / _WIDTH)] += weight
        self._known.clear()

    def ratio(self, share: float) -> float:
        known = self._known.get(share)
        if known is None:
            below = (self._assumed + self._seen).cumsum()
            known = self._known[share] = math.exp(float(np.interp(share * below[-1], below, _POINTS)))
        return known
