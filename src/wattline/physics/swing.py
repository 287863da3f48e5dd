"""Swing: by how much does the load of a feed go up and down with the steps of training on it?

Training computes, then waits for the network; all GPUs of one job do so together, so its swing is that of one
GPU times how many there are. Jobs do not know of each other: their steps are not in phase. A square wave of
height a deviates by a/2 from its mean; deviations of independent waves add by their squares. So within two
deviations to either side of the mean, which is where the sum is nearly always, lie 2 × √Σa². No sum is ever
higher than all of them in phase.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

DEVIATIONS = 2.0


def predict_swing_watts(gpus: int, computing_watts: float, communicating_watts: float) -> float:
    """How far the draw of GPUs in step falls and rises in each step."""
    return gpus * max(0.0, computing_watts - communicating_watts)


def predict_joint_swing_watts(swings_watts: Iterable[float], deviations: float = DEVIATIONS) -> float:
    """The swing of independent jobs together; the order they are told in makes no difference."""
    swings = list(swings_watts)
    by_squares = deviations * math.sqrt(math.fsum([swing * swing for swing in swings]))
    return min(math.fsum(swings), by_squares)


def most_swing_watts(
    others_watts: Iterable[float], limit_watts: float, deviations: float = DEVIATIONS
) -> float:
    """The largest swing that may join others; below zero where they are over the limit already."""
    others = list(others_watts)
    in_phase = limit_watts - math.fsum(others)
    squares = (limit_watts / deviations) ** 2 - math.fsum([swing * swing for swing in others])
    return max(in_phase, math.sqrt(squares) if squares > 0.0 else -1.0)
