"""Thermal: what do meters say about one temperature: gain, time constant, or gain alone from steady spans?

Where readings are too sparse to show a time constant, spans in which watts stood still for several of the
document's time constants are enough for the gain: each such span is one point, however many readings it has,
and a line through the points is fitted.
"""

from __future__ import annotations

import math

import numpy as np

from wattline.twin.calibrate.first_order import FirstOrder, fit_first_order
from wattline.twin.calibrate.intervals import Estimate
from wattline.twin.calibrate.response import build_response
from wattline.twin.calibrate.series import Array, Series, rounding_step, swing

_SETTLED_TIME_CONSTANTS = 5.0
_STEADY_SHARE = 0.03  # of the swing: watts that move less stand still
_FEWEST_SPANS = 4
_FEWEST_IN_SPAN = 4  # fewer that are equal may be chance, with another load in between


def fit_temperature(
    celsius: Series,
    base: Series,
    drive: Series,
    *,
    pace: Series | None,
    scale: float,
    present_seconds: float,
) -> FirstOrder:
    """Both figures from the response where it shows; the gain from steady spans where it does not."""
    response = build_response(celsius, base, drive, pace=pace, scale=scale)
    if response is None:
        reason = "its meters never speak together for long enough"
        return FirstOrder(samples=0, gain_reason=reason, time_constant_reason=reason)
    fitted = fit_first_order(response)
    if fitted.time_constant is not None:
        return fitted
    gain, reason = _fit_steady(celsius, base, drive, pace, present_seconds / scale)
    return FirstOrder(
        samples=fitted.samples,
        gain=gain,
        gain_reason=reason,
        time_constant_reason=fitted.time_constant_reason,
    )


def _fit_steady(
    celsius: Series, base: Series, drive: Series, pace: Series | None, time_constant_seconds: float
) -> tuple[Estimate | None, str]:
    inside = (celsius.at >= max(base.at[0], drive.at[0])) & (celsius.at <= min(base.at[-1], drive.at[-1]))
    at, above = celsius.at[inside], celsius.values[inside] - base.between(celsius.at[inside])
    driven = drive.last(at) / (1.0 if pace is None else np.maximum(pace.last(at), 1e-3))
    spans = _steady_spans(at, driven, _SETTLED_TIME_CONSTANTS * time_constant_seconds)
    if len(spans) < _FEWEST_SPANS:
        return (
            None,
            f"{len(spans)} spans with steady watts are too few for a line, {_FEWEST_SPANS} are enough",
        )
    watts = np.array([driven[span].mean() for span in spans])
    kelvin = np.array([above[span].mean() for span in spans])
    moved = watts - watts.mean()
    power = float(moved @ moved)
    if power <= 0.0:
        return None, "all its steady spans are at the same watts"
    gain = float(moved @ kelvin) / power
    left = kelvin - kelvin.mean() - gain * moved
    free = len(spans) - 2
    variance = max(float(left @ left) / free, rounding_step(celsius.values) ** 2 / 12.0)
    if gain <= 0.0:
        return None, "its temperature does not rise with what heats it"
    return Estimate(value=gain, error=math.sqrt(variance / power), freedom=free), ""


def _steady_spans(at: Array, driven: Array, settled_seconds: float) -> list[slice]:
    """Readings of each span in which the drive has stood still for long enough."""
    if len(at) < 2:
        return []
    still = _STEADY_SHARE * max(swing(driven), 1e-9)
    spans, first = [], 0
    for position in range(1, len(at) + 1):
        if position < len(at) and abs(driven[position] - driven[first]) <= still:
            continue
        settled = first + int(np.searchsorted(at[first:position], at[first] + settled_seconds))
        if settled < position and position - first >= _FEWEST_IN_SPAN:
            spans.append(slice(settled, position))
        first = position
    return spans
