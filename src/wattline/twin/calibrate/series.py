"""Series: what did one meter say over time, and what does that say about the moments between?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]

# A meter that was silent this many times longer than usual, and this long at least, was not there meanwhile.
_SILENT_SPACINGS = 10.0
_SILENT_SECONDS = 60.0
# Steps that meters round to; finer ones disappear in any noise.
_STEPS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.01)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Readings of one quantity of one thing, in order, one for each moment."""

    at: Array
    values: Array

    def __len__(self) -> int:
        return len(self.at)

    def last(self, moments: Array) -> Array:
        """What was last said at or before each moment."""
        return self.values[np.clip(np.searchsorted(self.at, moments, side="right") - 1, 0, None)]

    def next(self, moments: Array) -> Array:
        """What is said next, at each moment or after it."""
        return self.values[np.clip(np.searchsorted(self.at, moments, side="left"), None, len(self) - 1)]

    def between(self, moments: Array) -> Array:
        """On a straight line between readings."""
        return np.interp(moments, self.at, self.values)

    def silent(self, begins: Array, ends: Array) -> Mask:
        """Whether the meter was away during each span, which no reading may divide."""
        if len(self) < 2:
            return np.ones(len(begins), dtype=np.bool_)
        gaps = np.diff(self.at)
        longest = max(_SILENT_SECONDS, _SILENT_SPACINGS * float(np.median(gaps)))
        before = np.clip(np.searchsorted(self.at, begins, side="right") - 1, 0, len(gaps) - 1)
        is_silent: Mask = (gaps[before] > longest) | (begins < self.at[0]) | (ends > self.at[-1])
        return is_silent


def build_series(at: Sequence[float], values: Sequence[float]) -> tuple[Series, int]:
    """Sorted, the last word on each moment; and how many were said over again."""
    times, said = np.asarray(at, dtype=np.float64), np.asarray(values, dtype=np.float64)
    order = np.argsort(times, kind="stable")
    times, said = times[order], said[order]
    is_last = np.append(np.diff(times) > 0, True)
    return Series(times[is_last], said[is_last]), int(len(times) - np.count_nonzero(is_last))


def hold_until_told(series: Series, asked_at: Array) -> Series:
    """A meter that tells only what changed stood still until it was asked for the last time before that.

    `asked_at` are the moments at which it was asked, in order.
    """
    before = asked_at[np.clip(np.searchsorted(asked_at, series.at[1:], side="left") - 1, 0, None)]
    stood = before > series.at[:-1]
    at = np.concatenate([series.at, before[stood]])
    values = np.concatenate([series.values, series.values[:-1][stood]])
    order = np.argsort(at, kind="stable")
    return Series(at[order], values[order])


def add_up(parts: Sequence[Series]) -> Series | None:
    """The sum of several meters, over the time in which all of them speak."""
    begin, end = max(part.at[0] for part in parts), min(part.at[-1] for part in parts)
    moments = np.unique(np.concatenate([part.at for part in parts]))
    moments = moments[(moments >= begin) & (moments <= end)]
    if len(moments) < 2:
        return None
    total = np.zeros(len(moments))
    for part in parts:
        total += part.between(moments)
    return Series(moments, total)


def rounding_step(values: Array) -> float:
    """The step that values are rounded to; 0 where none is seen. GPUs tell whole degrees."""
    for step in _STEPS:
        if np.all(np.abs(values / step - np.round(values / step)) < 1e-6):
            return step
    return 0.0


def dot(left: Array, right: Array) -> float:
    """Without BLAS: its threads cost more than these products, and may sum in another order each time."""
    return float(np.einsum("i,i", left, right))


def swing(values: Array) -> float:
    """How far a quantity really moved: a few odd readings do not count."""
    low, high = np.percentile(values, [1.0, 99.0])
    return float(high - low)
