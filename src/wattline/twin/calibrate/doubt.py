"""Doubt: how far may an estimate be off that is, to first order, a weighted sum of readings?

Three causes are judged apart and the largest counts.

Noise that is alike throughout: the variance of what is left over, times how much neighbours repeat it.

Errors that gather where the load changed, because nobody saw when between two readings it did: what each
stretch of a few time constants moves the estimate by (a sandwich by stretches). Alone it would vanish for a
record with a single step, which can be followed exactly.

Rounding: one error for each run of equal readings. Left-overs alone would vanish where there are few levels.
"""

from __future__ import annotations

import math

import numpy as np

from wattline.twin.calibrate.intervals import Estimate, repetition
from wattline.twin.calibrate.response import Response
from wattline.twin.calibrate.series import Array, Whole, dot, rounding_step

_ONLY_ROUNDING = 1.5
_STRETCH_TIME_CONSTANTS = 4.0
_MOST_OF_ALL = 0.9


class Doubt:
    """What is left over of one response once it is explained with this time constant."""

    def __init__(self, response: Response, residuals: Array, time_constant_seconds: float) -> None:
        self._residuals = residuals
        self._runs = _begins(response.seen_celsius, response)
        self._stretches = _begins(
            np.floor(response.since_start_seconds / (_STRETCH_TIME_CONSTANTS * time_constant_seconds)),
            response,
        )
        self._rounding_kelvin = rounding_step(response.seen_celsius) / math.sqrt(12.0)
        squares = dot(residuals, residuals)
        repeated = repetition(residuals)
        spent = 3 + response.segments  # gain, time constant, offset, and where each segment began
        self.independent = len(residuals) / repeated
        if math.sqrt(squares / len(residuals)) <= _ONLY_ROUNDING * self._rounding_kelvin:
            self.independent = max(self.independent, len(self._runs))
        self.free = min(self.independent, len(residuals)) - spent
        self._noise_kelvin = math.sqrt(squares / max(1, len(residuals) - spent) * repeated)

    def estimate(self, value: float, weights: Array) -> Estimate:
        """A value with its error, given how much each reading moves it."""
        noise = self._noise_kelvin * _length(weights)
        rounding = self._rounding_kelvin * _length(np.add.reduceat(weights, self._runs))
        power = np.add.reduceat(weights**2, self._stretches)
        shares = power / max(float(power.sum()), 1e-300)
        # A stretch that decides an estimate hides its own error: what is left of it is scaled up.
        moved = np.add.reduceat(weights * self._residuals, self._stretches)
        changing = _length(moved / (1.0 - np.minimum(shares, _MOST_OF_ALL)))
        speaking = 1.0 / max(float((shares**2).sum()), 1e-300)
        return Estimate(value=value, error=max(noise, rounding, changing), freedom=min(self.free, speaking))


def _length(values: Array) -> float:
    return math.sqrt(dot(values, values))


def _begins(values: Array, response: Response) -> Whole:
    """Where runs of equal values begin; none goes on in another segment."""
    is_new = np.append(True, np.diff(values) != 0.0)
    is_new[response.first_of_segment] = True
    return np.flatnonzero(is_new)
