"""Cap curve: how fast does a network run under a power cap, given what it draws without one?

A cap leaves a network the watts above what the device draws at any clock. Where voltage follows the clock,
those watts grow with a power of speed, so the first watts taken cost little speed; below the knee voltage is
at its floor, watts only grow with speed itself, and the same watt costs several times as much: the cliff.

Of the network only its average draw without a cap is used, which is known from an earlier run or from its
first minutes. What share of its time is bound by the clock, by memory or by its host is not known, nor how
far it peaks above its average; that is most of what the curve misses.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from wattline.physics.fitting import minimise


@dataclass(frozen=True, slots=True, kw_only=True)
class CapPoint:
    """One measurement: a network's speed under a cap, relative to its own speed without one."""

    cap_watts: float
    uncapped_watts: float
    speed: float
    drawn_watts: float | None = None  # on average, under the cap


@dataclass(frozen=True, slots=True, kw_only=True)
class CapCurve:
    """One device."""

    static_watts: float  # drawn at any clock
    exponent: float  # above the knee, watts above static_watts follow speed to this power
    knee: float  # share of the uncapped watts, above static_watts, at which voltage reaches its floor

    def predict(self, cap_watts: float, uncapped_watts: float) -> float:
        """Throughput under the cap, relative to none; 1 where the network draws no more than the cap."""
        if uncapped_watts <= cap_watts:
            return 1.0
        if cap_watts <= self.static_watts:
            return 0.0
        share = (cap_watts - self.static_watts) / (uncapped_watts - self.static_watts)
        if share >= self.knee:
            return math.pow(share, 1.0 / self.exponent)
        return share * math.pow(self.knee, 1.0 / self.exponent - 1.0)


# Measured: fit_cap_curve over all networks of ml-energy/zeus on that device, 68 and 52 configurations.
# How far they miss networks that were held out, and how they vary between folds: docs/validation.md.
V100_CAP_CURVE = CapCurve(static_watts=36.2, exponent=2.93, knee=0.496)
RTX6000_CAP_CURVE = CapCurve(static_watts=55.4, exponent=3.53, knee=0.450)


def device_cap_curve(idle_watts: float) -> CapCurve:
    """The curve assumed for a device that was not measured: a V100's, above what the device draws idle."""
    return replace(V100_CAP_CURVE, static_watts=idle_watts)


def fit_cap_curve(points: Sequence[CapPoint]) -> CapCurve:
    """The curve of one device with the least squared error over its points.

    The lowest draw among the points stands for static_watts: a network that leaves the GPU waiting shows it
    directly, and a fit of all three could not tell static_watts from the knee.
    """
    static_watts = min(min(point.uncapped_watts, point.cap_watts) for point in points)

    def loss(parameters: tuple[float, ...]) -> float:
        exponent, knee = parameters
        if not (exponent >= 1.0 and 0.0 < knee <= 1.0):
            return math.inf
        curve = CapCurve(static_watts=static_watts, exponent=exponent, knee=knee)
        return sum(
            (curve.predict(point.cap_watts, point.uncapped_watts) - point.speed) ** 2 for point in points
        )

    exponent, knee = minimise(loss, start=(3.0, 0.4), steps=(0.5, 0.1))
    return CapCurve(static_watts=static_watts, exponent=exponent, knee=knee)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawCurve:
    """What a network draws under a cap, and how fast it is then, both against itself without a cap.

    A network's average lies below its peaks, and a cap cuts the peaks: it takes watts and speed long before
    it is as low as the average. What a meter reads under a cap therefore says what would be drawn without.
    Who draws more of the limit is bound more by the clock, and loses more speed with the same share of watts.
    """

    taken: float  # of its draw, for each share of the device's limit that a cap takes
    lost: float  # speed lost by a network that draws the limit, if all its watts were taken
    exponent: float  # … falling with the share of watts that is taken to this power
    hunger: float  # … and with the share of the limit that it draws without a cap, to this one

    def predict_watts(self, limit_watts: float, cap_fraction: float, uncapped_watts: float) -> float:
        """What is drawn on average under a cap."""
        return min(cap_fraction * limit_watts, uncapped_watts * self._left(cap_fraction))

    def infer_uncapped_watts(self, cap_fraction: float, drawn_watts: float) -> float:
        """What would be drawn without the cap. Where the cap itself is drawn it may be more than this."""
        return drawn_watts / self._left(cap_fraction)

    def predict_speed(self, limit_watts: float, drawn_watts: float, uncapped_watts: float) -> float:
        """Throughput at what is drawn, relative to none taken."""
        if drawn_watts >= uncapped_watts:
            return 1.0
        taken = 1.0 - drawn_watts / uncapped_watts
        steepness = self.lost * math.pow(uncapped_watts / limit_watts, self.hunger)
        return max(0.0, 1.0 - steepness * math.pow(taken, self.exponent))

    def _left(self, cap_fraction: float) -> float:
        return 1.0 - self.taken * (1.0 - cap_fraction)


# Measured: fit_draw_curve over networks of ml-energy/zeus on a V100 that draw at least 100 W. With any one of
# the networks left out the fit is nearly the same, and divides watts nearly as well.
V100_DRAW_CURVE = DrawCurve(taken=0.827, lost=1.657, exponent=2.034, hunger=1.322)


def fit_draw_curve(points: Sequence[CapPoint], limit_watts: float) -> DrawCurve:
    """The curve of one device with the least squared error in speed over its points."""
    known = [
        (point.drawn_watts, point.uncapped_watts, point.speed, point.cap_watts)
        for point in points
        if point.drawn_watts is not None and point.cap_watts < limit_watts
    ]
    taken = median((1.0 - drawn / whole) / (1.0 - cap / limit_watts) for drawn, whole, _, cap in known)

    def curve_of(parameters: tuple[float, ...]) -> DrawCurve:
        lost, exponent, hunger = parameters
        return DrawCurve(taken=taken, lost=lost, exponent=exponent, hunger=hunger)

    def loss(parameters: tuple[float, ...]) -> float:
        if parameters[0] <= 0.0 or parameters[1] < 1.0:
            return math.inf
        curve = curve_of(parameters)
        return sum(
            (curve.predict_speed(limit_watts, drawn, whole) - speed) ** 2 for drawn, whole, speed, _ in known
        )

    return curve_of(minimise(loss, start=(1.0, 1.7, 0.5), steps=(0.3, 0.3, 0.5)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCurve:
    """One network as it was measured on one device: at each cap its draw and its speed; lines in between."""

    cap_fractions: tuple[float, ...]  # of the device's limit, rising, the last one 1
    watts: tuple[float, ...]
    speeds: tuple[float, ...]

    def predict_watts(self, cap_fraction: float) -> float:
        return self._between(self.watts, cap_fraction)

    def predict_speed(self, cap_fraction: float) -> float:
        return self._between(self.speeds, cap_fraction)

    def _between(self, values: tuple[float, ...], cap_fraction: float) -> float:
        """Below the lowest cap that was measured, what was measured there: devices take none lower."""
        caps = self.cap_fractions
        upper = bisect_right(caps, cap_fraction)
        if upper == 0 or upper == len(caps):
            return values[min(upper, len(caps) - 1)]
        way = (cap_fraction - caps[upper - 1]) / (caps[upper] - caps[upper - 1])
        return values[upper - 1] + way * (values[upper] - values[upper - 1])
