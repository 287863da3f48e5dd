"""Ahead: what will the next hours of a series be, from nothing but its past?

The day repeats itself, and what today is above or below it wears off. A profile by hour of the day weighs
recent days more; the last hours' distance from it is carried on and decays. Hours that nobody knows are None
and count for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

HOURS_IN_A_DAY = 24
_MOST_DAYS = 7
_DAY_DECAY = 0.6  # what a day counts less than the one after it
_RESIDUAL_HOURS = 24.0  # a distance from the profile is down to 1/e after this long
_RECENT_WEIGHTS = (0.6, 0.3, 0.1)  # of the last hours, the newest first
LEAST_HISTORY_HOURS = 2 * HOURS_IN_A_DAY

Past = Sequence[float | None]


def expect_hours(past: Past, hours: int) -> list[float | None]:
    """The next `hours`, the first of which begins where `past` ends; None where the past tells nothing."""
    if len(past) < LEAST_HISTORY_HOURS:
        return [None] * hours
    day = [_profile(past, len(past) + hour) for hour in range(HOURS_IN_A_DAY)]
    residual = _residual(past)
    ahead: list[float | None] = []
    for hour in range(hours):
        usual = day[hour % HOURS_IN_A_DAY]
        ahead.append(None if usual is None else usual + residual * math.exp(-hour / _RESIDUAL_HOURS))
    return ahead


def _profile(past: Past, position: int) -> float | None:
    """What stood at this hour of the day on the days before `position`."""
    total = weights = 0.0
    weight = 1.0
    for days in range(1, _MOST_DAYS + 1):
        earlier = position - days * HOURS_IN_A_DAY
        if earlier < 0:
            break
        value = past[earlier] if earlier < len(past) else None
        if value is not None:
            total += weight * value
            weights += weight
        weight *= _DAY_DECAY
    return total / weights if weights else None


def _residual(past: Past) -> float:
    """How far the last hours stood from what their hour of the day let expect."""
    total = weights = 0.0
    for back, weight in enumerate(_RECENT_WEIGHTS, start=1):
        position = len(past) - back
        value, usual = past[position], _profile(past, position)
        if value is not None and usual is not None:
            total += weight * (value - usual)
            weights += weight
    return total / weights if weights else 0.0
