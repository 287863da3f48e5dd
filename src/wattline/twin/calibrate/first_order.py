"""First order: which gain and time constant explain a temperature best, and how surely?

For each time constant, gain, sensor offset and the state at the start of each segment are linear, so they are
solved exactly and only the time constant is searched for, on a logarithmic grid and then between its points
(variable projection). The offset is left free on purpose: sensors of a die and of its coolant disagree by a
few kelvin, and GPUs cut off the fraction of a degree. What stays is how temperature moves when watts move,
which is why constant watts can tell nothing.

How far each estimate may be off is judged in `doubt`, from the same projection.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from wattline.twin.calibrate.doubt import Doubt
from wattline.twin.calibrate.intervals import Estimate
from wattline.twin.calibrate.response import Hold, Response
from wattline.twin.calibrate.series import Array, dot

_COARSE = 24
_ROUNDS = 18
_STEP = 1e-3  # of a time constant, for its derivative
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_FEWEST_FREE = 5.0
_LEAST_EXPLAINED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOrder:
    """One temperature's fit; None with its reason where a part cannot be told."""

    samples: int
    gain: Estimate | None = None
    time_constant: Estimate | None = None
    gain_reason: str = ""
    time_constant_reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """The best that one time constant can do."""

    gain: float
    residuals: Array
    drive: Array  # what it says that offset and starts do not
    explained: float

    @property
    def squares(self) -> float:
        return dot(self.residuals, self.residuals)


def fit_first_order(response: Response) -> FirstOrder:
    """Gain and time constant of a response whose drive has moved."""
    samples = len(response.seen)
    spacing = np.diff(response.since_start_seconds, prepend=0.0)
    spacing[response.first_of_segment] = 0.0
    steps = spacing[spacing > 0.0]
    if len(steps) == 0:
        return _unknown(samples, "no two readings follow each other")
    low, high = 0.2 * float(np.median(steps)), float(response.since_start_seconds.max())
    if high <= 4.0 * low:
        return _unknown(samples, "no span of readings is long enough")
    seconds, hold = _search(response, low, high)
    solved = _solve(response, seconds, hold)
    doubt = Doubt(response, solved.residuals, seconds)
    if solved.gain <= 0.0:
        return _unknown(samples, "its temperature does not rise with what heats it")
    if solved.explained < _LEAST_EXPLAINED:
        share = f"{100 * max(0.0, solved.explained):.0f} %"
        return _unknown(samples, f"what heats it explains only {share} of how its temperature moved")
    if doubt.free < _FEWEST_FREE:
        about = f"about {doubt.independent:.0f} are independent"
        return _unknown(samples, f"its {samples} readings repeat each other: {about}")
    gain_weights, time_weights = _weights(response, seconds, hold, solved)
    shown_by = time_weights**2 / max(dot(time_weights, time_weights), 1e-300)
    reason = _why_no_time_constant(seconds, low, high, dot(shown_by, spacing))
    return FirstOrder(
        samples=samples,
        gain=doubt.estimate(solved.gain, gain_weights),
        time_constant=None if reason else doubt.estimate(seconds, time_weights),
        time_constant_reason=reason,
    )


def _why_no_time_constant(seconds: float, low: float, high: float, apart_seconds: float) -> str:
    """`apart_seconds` is the spacing of those readings that the time constant rests on."""
    if seconds < 1.1 * low or apart_seconds > seconds:
        return (
            f"readings are {apart_seconds:.3g} s apart, too far for a time constant of about {seconds:.3g} s"
        )
    if seconds > 0.9 * high:
        return f"it is slower than the longest span of readings, {high:.3g} s"
    return ""


def _unknown(samples: int, reason: str) -> FirstOrder:
    return FirstOrder(samples=samples, gain_reason=reason, time_constant_reason=reason)


def _search(response: Response, low: float, high: float) -> tuple[float, Hold]:
    grid = np.geomspace(low, high, _COARSE)
    coarse = [_solve(response, float(seconds), Hold.STRAIGHT).squares for seconds in grid]
    at = int(np.argmin(coarse))
    # A wider bracket than the neighbours: another hold moves the best by about one spacing.
    begin, end = math.log(grid[max(0, at - 2)]), math.log(grid[min(_COARSE - 1, at + 2)])
    found = []
    for hold in Hold:
        seconds = math.exp(_minimise(partial(_cost, response, hold), begin, end))
        found.append((_cost(response, hold, math.log(seconds)), seconds, hold))
    _, seconds, hold = min(found, key=lambda one: one[0])
    return seconds, hold


def _cost(response: Response, hold: Hold, log_seconds: float) -> float:
    return _solve(response, math.exp(log_seconds), hold).squares


def _minimise(cost: Callable[[float], float], begin: float, end: float) -> float:
    """Golden section."""
    left, right = end - _GOLDEN * (end - begin), begin + _GOLDEN * (end - begin)
    left_cost, right_cost = cost(left), cost(right)
    for _ in range(_ROUNDS):
        if left_cost <= right_cost:
            end, right, right_cost = right, left, left_cost
            left = end - _GOLDEN * (end - begin)
            left_cost = cost(left)
        else:
            begin, left, left_cost = left, right, right_cost
            right = begin + _GOLDEN * (end - begin)
            right_cost = cost(right)
    return 0.5 * (begin + end)


def _solve(response: Response, seconds: float, hold: Hold) -> _Solved:
    base, drive = response.follow(seconds, hold)
    rows = np.stack([response.seen_celsius - base, drive, np.ones_like(base)])
    fading = np.exp(-response.since_start_seconds / seconds)
    first = response.first_of_segment
    weight = np.add.reduceat(fading * fading, first)
    for row in rows:
        row -= fading * response.spread_to_seen(np.add.reduceat(row * fading, first) / weight)
    above, moved, level = rows
    for row in (above, moved):
        row -= level * dot(row, level) / max(dot(level, level), 1e-12)
    power = dot(moved, moved)
    gain = dot(above, moved) / power if power > 0.0 else 0.0
    residuals = above - gain * moved
    whole = dot(above, above)
    explained = 1.0 - dot(residuals, residuals) / whole if whole > 0.0 else 0.0
    return _Solved(gain=gain, residuals=residuals, drive=moved, explained=explained)


def _weights(response: Response, seconds: float, hold: Hold, solved: _Solved) -> tuple[Array, Array]:
    """How much each reading moves the gain and the time constant, to first order."""
    later = _solve(response, seconds * (1.0 + _STEP), hold)
    earlier = _solve(response, seconds * (1.0 - _STEP), hold)
    width = 2.0 * _STEP * seconds
    slope = (later.residuals - earlier.residuals) / width
    gain_slope = (later.gain - earlier.gain) / width
    time_weights = -slope / max(dot(slope, slope), 1e-300)
    gain_weights = solved.drive / dot(solved.drive, solved.drive) + gain_slope * time_weights
    return gain_weights, time_weights
