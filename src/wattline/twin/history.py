"""History: how long will a job take, by how long jobs like it took lately?

A group is a path from the general to the special, such as (cluster, GPUs). Each level of it keeps what ended
there as a histogram of logarithms in which the past fades: what is submitted now resembles what was submitted
lately. Where a group has seen little, the more general one speaks; the more it has seen, the less.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

Group = tuple[Hashable, ...]

# A bin is 15 % wide; the last one begins at 190 days.
_LOG_WIDTH = math.log(1.15)
_BINS = 120
# Weights: of a job, when the next has ended; of the more general group, in jobs. Tried on Philly: between 200
# and 500, and between 5 and 20, the loss moves by less than a tenth (python -m bench.estimates).
_FADING = 1.0 - 1.0 / 300.0
_GENERAL_JOBS = 5.0


class History:
    """What ended, in the order in which it ended."""

    def __init__(self) -> None:
        self._seen: dict[Group, NDArray[np.float64]] = {}

    def add(self, group: Group, seconds: float) -> None:
        bin_ = min(_BINS - 1, int(math.log(max(1.0, seconds)) / _LOG_WIDTH))
        for depth in range(len(group) + 1):
            seen = self._seen.get(group[:depth])
            if seen is None:
                seen = self._seen[group[:depth]] = np.zeros(_BINS)
            seen *= _FADING
            seen[bin_] += 1.0

    def weight(self, group: Group) -> float:
        """How many jobs speak for this very group, those long past in part."""
        seen = self._seen.get(group)
        return 0.0 if seen is None else float(seen.sum())

    def quantile_seconds(self, group: Group, share: float) -> float | None:
        """Such a share of jobs like this stays below; None where nothing has ended yet."""
        general = self._seen.get(())
        if general is None:
            return None
        shares = general / general.sum()
        for depth in range(1, len(group) + 1):
            seen = self._seen.get(group[:depth])
            if seen is None:
                break
            shares = (seen + _GENERAL_JOBS * shares) / (seen.sum() + _GENERAL_JOBS)
        below = shares.cumsum()
        bin_ = min(int(np.searchsorted(below, share)), _BINS - 1)
        within = 1.0 - (below[bin_] - share) / shares[bin_]
        return math.exp(_LOG_WIDTH * (bin_ + min(1.0, float(within))))
