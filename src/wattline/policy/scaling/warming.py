"""Warming: how many unused nodes of a pool stay awake, so that whoever comes next finds one?

Whoever comes finds nodes awake unless too many came in the time that waking takes, while those they used are
not yet replaced. They come in lots of unequal size, which are taken to come like Poisson at the rate seen
lately; lots of one size, chosen to have the same mean and variance, stand for them.
"""

from __future__ import annotations

import math

from wattline.spec.scaling import Scaling
from wattline.state import Came

_NEVER_SECONDS = 86400.0  # a pool where less than one start in so long is expected keeps nothing warm
_WIDTHS = 10.0  # so many deviations below its mean, what a Poisson number has there does not count


def warm_nodes(came: Came | None, at: float, wake_seconds: float, scaling: Scaling) -> int:
    """Nodes that stay awake without work."""
    wanted = 0
    if came is not None and came.nodes > 0.0:
        now = came.faded(at)
        if now.per_second * _NEVER_SECONDS >= 1.0:
            lot = now.squares / now.nodes
            lots_in_waking = now.per_second * wake_seconds * (now.nodes / now.lots) / lot
            before = poisson_quantile(lots_in_waking, scaling.warm_hit)
            wanted = math.ceil((before + 1) * lot - 1e-9)
    return max(scaling.least_warm, min(scaling.most_warm, wanted))


def poisson_quantile(mean: float, share: float) -> int:
    """The least number that a Poisson variable stays at or below with this probability."""
    if mean <= 0.0:
        return 0
    number = max(0, math.floor(mean - _WIDTHS * math.sqrt(mean)))
    below = 0.0
    while True:
        below += math.exp(number * math.log(mean) - mean - math.lgamma(number + 1.0))
        if below >= share or number > mean + _WIDTHS * math.sqrt(mean) + _WIDTHS:
            return number
        number += 1
