"""Lag: how far has something come that follows something else, which itself may still be moving?

Plain numbers in, plain numbers out: for callers that follow thousands of dies and cannot afford objects.
"""

from __future__ import annotations

from math import exp, expm1, log1p


def predict_followed(seconds: float, time_constant_seconds: float) -> float:
    """The part of a step that a first-order lag has come after so long."""
    return -expm1(-seconds / time_constant_seconds)


def predict_cascaded(seconds: float, first_seconds: float, second_seconds: float) -> float:
    """The part of a step that the second of two first-order lags in a row has come after so long."""
    return predict_chased(seconds, first_seconds, second_seconds)[1]


def predict_chased(seconds: float, first_seconds: float, second_seconds: float) -> tuple[float, float]:
    """Of the second of two lags in a row: what it follows of a step of its own, and of the first's step.

    The textbook form divides by the difference of the time constants; written with expm1 of the smaller
    exponent it stays exact where they are equal and never overflows.
    """
    first, second = seconds / first_seconds, seconds / second_seconds
    apart, nearer = (second - first, first) if first <= second else (first - second, second)
    ratio = -expm1(-apart) / apart if apart else 1.0
    followed = -expm1(-second)
    return followed, followed - second * exp(-nearer) * ratio


def predict_turn_seconds(pull: float, gap: float, first_seconds: float, second_seconds: float) -> float:
    """When the second of two lags in a row turns round; 0 where it never does.

    `pull` is how far the second is from what it follows (the first, and whatever is added to it), `gap` how
    far the first is from where it ends. The slope of the second is proportional to
    pull·e^(-t/second) + gap·second·(e^(-t/first) - e^(-t/second)) / (first - second).
    """
    if gap * second_seconds == 0.0:  # also where it is too small to divide by
        return 0.0
    lead_seconds = -pull * first_seconds / gap
    bend = -pull * (first_seconds - second_seconds) / (gap * second_seconds)
    if lead_seconds <= 0.0 or bend <= -1.0:
        return 0.0
    return lead_seconds * (log1p(bend) / bend if bend else 1.0)


def predict_ramp_turn_seconds(pull: float, per_second: float, second_seconds: float) -> float:
    """The same where the first moves along a ramp, as coolant does when its pump stands still."""
    if pull * per_second >= 0.0:
        return 0.0
    return second_seconds * log1p(-pull / (per_second * second_seconds))
