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
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wattline.facility import Device
from wattline.physics.fitting import minimise


@dataclass(frozen=True, slots=True, kw_only=True)
class CapPoint:
    """One measurement: a network's speed under a cap, relative to its own speed without one."""

    cap_watts: float
    uncapped_watts: float
    speed: float


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


def device_cap_curve(device: Device) -> CapCurve:
    """The curve assumed for a device that was not measured: a V100's, above the device's own idle draw."""
    return replace(V100_CAP_CURVE, static_watts=device.idle_watts)


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
