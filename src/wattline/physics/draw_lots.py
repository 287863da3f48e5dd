"""Draw by lot: how hard does a job work its GPUs, when nothing but its trace is known?

Traces say how many GPUs a job held and for how long, not what they drew. Two lots stand for what is not
known: the first for how much of the time a kernel is resident, the second for what that kernel wants. Over
many jobs the levels follow GPUs that hold a job's memory on Seren: those that hold nothing are left out, as
the twin has its own empty nodes; those that hold memory and do nothing stay, at level 0.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache

from wattline.physics.utilisation import A100_DRAW

# Seren: 74.3 % of its GPUs hold more than 1 % of their memory, 68.5 % have a duty above 0. The series is not
# labelled; it is taken for memory by its range and its place after utilisation in the publisher's notebook.
_IDLE_SHARE = 0.08
# Seren's duty where it is above 0: share of GPUs at or below it. Measured, at whole percents.
_DUTY_SHARES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.3, 0.7, 1.0)
_DUTIES = (0.02, 0.28, 0.54, 0.65, 0.82, 0.92, 0.96, 0.98, 0.99, 1.0, 1.0)
# 437 W on a 400 W device: what one sample in a hundred exceeds there. A sample above it is a moment of a
# job; a level is the whole of it.
_MOST_WATTS = 437.0
_CELLS = 1024


def predict_draw_utilisation(lot_1: float, lot_2: float) -> float:
    """A job's draw between idle (0) and its device's limit (1), up to 1.11 where the limit is overshot.

    Both lots are uniform from 0 to 1; a larger lot never gives a lower level.
    """
    duties, levels = _tables()
    return duties[int(lot_1 * _CELLS)] * levels[int(lot_2 * _CELLS)]


@cache
def _tables() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Duty and level at full duty, each for the middle of its cell; once more the last, for a lot of 1."""
    middles = [(number + 0.5) / _CELLS for number in range(_CELLS)]
    middles.append(middles[-1])
    return tuple(map(_predict_duty, middles)), tuple(map(_predict_level, middles))


def _predict_duty(lot: float) -> float:
    if lot < _IDLE_SHARE:
        return 0.0
    share = (lot - _IDLE_SHARE) / (1.0 - _IDLE_SHARE)
    upper = bisect_right(_DUTY_SHARES, share)
    way = (share - _DUTY_SHARES[upper - 1]) / (_DUTY_SHARES[upper] - _DUTY_SHARES[upper - 1])
    return _DUTIES[upper - 1] + way * (_DUTIES[upper] - _DUTIES[upper - 1])


def _predict_level(lot: float) -> float:
    """What this share of GPUs at full duty does not exceed: the inverse of DrawCurve.share_below."""
    low, high = A100_DRAW.idle_watts, _MOST_WATTS
    while high - low > 1e-2:
        middle = 0.5 * (low + high)
        if A100_DRAW.share_below(middle, 1.0) < lot:
            low = middle
        else:
            high = middle
    return (low - A100_DRAW.idle_watts) / (A100_DRAW.limit_watts - A100_DRAW.idle_watts)
