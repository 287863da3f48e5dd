"""Kind: what does a node of this make draw, how fast is it under a cap, and where does its heat stop it?

All nodes of one make at one site share one Kind, so that nothing is worked out twice.
"""

from __future__ import annotations

import math

from wattline.facility import Device, Loop, Node
from wattline.physics import HeatState, predict_heat_speed, predict_other_watts
from wattline.physics.cap_curve import OwnCurve, device_cap_curve
from wattline.physics.server import predict_compute_watts
from wattline.physics.throttle import SHUTDOWN_HYSTERESIS_KELVIN
from wattline.twin.truth.lots import CURVE_WIDTH, IDLE_WIDTH, Lots

# Firmware lowers clocks in steps between the throttle limit and the slowdown's: this many.
HEAT_STEPS = 8
SHUTDOWN = HEAT_STEPS + 2  # the level between is the hardware's slowdown
# How much cooler than the throttle limit before firmware gives speed back; assumed.
_STEP_HYSTERESIS_KELVIN = 1.0
# Watts are whole multiples of this, so that sums over thousands of changes stay exact.
_QUANTA_PER_WATT = 2.0**20


class Kind:
    """One make of node at one site."""

    __slots__ = (
        "_busy_other_watts",
        "_cap_curve",
        "_cap_watts",
        "_empty_compute_watts",
        "_idle_other_watts",
        "_least_watts",
        "_span_watts",
        "asleep_box_watts",
        "cooling",
        "empty_box_watts",
        "enters_celsius",
        "full_watts",
        "gpus",
        "idle_box_watts",
        "idle_gpu_watts",
        "idle_part_watts",
        "leaves_celsius",
        "speeds",
    )

    def __init__(
        self, node: Node, loop: Loop, site: str, lots: Lots, asleep: float = 1.0, sent_asleep: float = 1.0
    ) -> None:
        self.gpus = node.gpus
        device = node.device
        self.idle_gpu_watts = self._span_watts = self._cap_watts = self._least_watts = 0.0
        if device is not None:
            subject = f"{site}/{device.name}"
            self.idle_gpu_watts = device.idle_watts * lots.factor(IDLE_WIDTH, f"idle/{subject}")
            span_watts = device.limit_watts - device.idle_watts
            self._span_watts = span_watts * lots.factor(CURVE_WIDTH, f"curve/{subject}")
            self._cap_watts, self._least_watts = device.limit_watts, device.least_limit_watts
        self._cap_curve = device_cap_curve(self.idle_gpu_watts)
        # A box without GPUs draws what it draws idle: work is counted in GPUs.
        other_watts = node.other_watts / max(1, node.gpus)  # for each GPU
        self._idle_other_watts = predict_other_watts(other_watts, 0.0)
        self._busy_other_watts = predict_other_watts(other_watts, 1.0) - self._idle_other_watts
        self.idle_part_watts = self.part_watts(self.idle_gpu_watts, 0.0) if node.gpus else 0.0
        self.idle_box_watts = max(1, node.gpus) * self.part_watts(self.idle_gpu_watts, 0.0)
        self.empty_box_watts = _quantise(asleep * self.idle_box_watts)  # while nobody uses it
        self.asleep_box_watts = _quantise(sent_asleep * self.idle_box_watts)  # once it was sent to sleep
        self.cooling, self.full_watts = loop.kind, node.nameplate_watts
        self._empty_compute_watts = predict_compute_watts(self.cooling, self.empty_box_watts, self.full_watts)
        self.enters_celsius, self.leaves_celsius = _marks(device)
        self.speeds = _speeds(device)

    def gpu_watts(self, utilisation: float, cap_fraction: float) -> float:
        """One GPU's draw. Where nothing caps it, a busy one exceeds its rating, as real ones do."""
        wanted_watts = self.idle_gpu_watts + utilisation * self._span_watts
        if cap_fraction < 1.0:
            return min(wanted_watts, max(cap_fraction * self._cap_watts, self._least_watts))
        return wanted_watts

    def part_watts(self, gpu_watts: float, utilisation: float) -> float:
        """One GPU with its part of the box around it."""
        busy_watts = self._busy_other_watts * min(1.0, utilisation)
        return round((gpu_watts + self._idle_other_watts + busy_watts) * _QUANTA_PER_WATT) / _QUANTA_PER_WATT

    def compute_watts(self, watts: float) -> float:
        """What reaches the chips of a box that draws so much."""
        if watts == self.empty_box_watts:  # half of all that is asked
            return self._empty_compute_watts
        return predict_compute_watts(self.cooling, watts, self.full_watts)

    def own_watts(self, curve: OwnCurve, utilisation: float, cap_fraction: float) -> float:
        """One GPU's draw under work that was measured by itself; a device takes no cap below its least."""
        drawn_watts = curve.predict_watts(cap_fraction)
        return self.idle_gpu_watts + min(1.0, utilisation) * max(0.0, drawn_watts - self.idle_gpu_watts)

    def power_speed(self, utilisation: float, cap_fraction: float) -> float:
        """A cap slows only as far as it binds, and whoever wants more the more of its speed."""
        if cap_fraction >= 1.0 or self._cap_watts == 0.0:
            return 1.0
        wanted_watts = self.idle_gpu_watts + utilisation * self._span_watts
        allowed_watts = max(cap_fraction * self._cap_watts, self._least_watts)
        return self._cap_curve.predict(allowed_watts, wanted_watts)


def _quantise(watts: float) -> float:
    return round(watts * _QUANTA_PER_WATT) / _QUANTA_PER_WATT


def _marks(device: Device | None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """For each heat level the die temperature at which the next worse begins, and at which it ends."""
    if device is None:
        return (math.inf,), (-math.inf,)
    step = (device.slowdown_celsius - device.throttle_celsius) / HEAT_STEPS
    steps = [device.throttle_celsius + number * step for number in range(HEAT_STEPS)]
    enters = (*steps, device.slowdown_celsius, device.shutdown_celsius, math.inf)
    leaves = (
        -math.inf,
        *([device.throttle_celsius - _STEP_HYSTERESIS_KELVIN] * HEAT_STEPS),
        device.throttle_celsius,
        device.shutdown_celsius - SHUTDOWN_HYSTERESIS_KELVIN,
    )
    return enters, leaves


def _speeds(device: Device | None) -> tuple[float, ...]:
    """The line of `predict_heat_speed`, each step as slow as the line is at the step's hot end."""
    if device is None:
        return (1.0,)
    ends = _marks(device)[0][1 : HEAT_STEPS + 1]
    return (
        1.0,
        *(predict_heat_speed(device, celsius, HeatState.NORMAL) for celsius in ends),
        predict_heat_speed(device, device.slowdown_celsius, HeatState.SLOWDOWN),
        0.0,
    )
