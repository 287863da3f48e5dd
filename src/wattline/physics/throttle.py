"""Throttle: how fast does a device run at this temperature and cap, and which of the two limits it?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wattline.enums import plain_members
from wattline.facility import Device
from wattline.physics.power import least_cap_fraction, predict_speed

SLOWDOWN_SPEED = 0.5  # hardware slowdown halves the clocks
SHUTDOWN_HYSTERESIS_KELVIN = 10.0  # how much cooler before a device that went off comes back; assumed


@plain_members
class HeatState(StrEnum):
    """What a device does about its own heat."""

    NORMAL = "normal"
    SLOWDOWN = "slowdown"
    SHUTDOWN = "shutdown"


@plain_members
class LimitedBy(StrEnum):
    NONE = "none"
    POWER = "power"
    HEAT = "heat"


@dataclass(frozen=True, slots=True)
class Pace:
    """Speed relative to unlimited, and what holds it back."""

    speed: float
    limited_by: LimitedBy


def predict_heat_state(device: Device, celsius: float, before: HeatState) -> HeatState:
    """Each state is entered at its own limit and left only when clearly cooler, so it does not flutter."""
    if celsius >= device.shutdown_celsius:
        return HeatState.SHUTDOWN
    if before is HeatState.SHUTDOWN and celsius > device.shutdown_celsius - SHUTDOWN_HYSTERESIS_KELVIN:
        return HeatState.SHUTDOWN
    if celsius >= device.slowdown_celsius:
        return HeatState.SLOWDOWN
    if before is HeatState.SLOWDOWN and celsius > device.throttle_celsius:
        return HeatState.SLOWDOWN
    return HeatState.NORMAL


def predict_heat_speed(device: Device, celsius: float, state: HeatState) -> float:
    """Full speed up to the throttle limit, then falling in a line to the slowdown's."""
    if state is HeatState.SHUTDOWN:
        return 0.0
    if state is HeatState.SLOWDOWN:
        return SLOWDOWN_SPEED
    if celsius <= device.throttle_celsius:
        return 1.0
    way = (celsius - device.throttle_celsius) / (device.slowdown_celsius - device.throttle_celsius)
    return max(SLOWDOWN_SPEED, 1.0 - way * (1.0 - SLOWDOWN_SPEED))


def predict_pace(device: Device, heat_speed: float, cap_fraction: float) -> Pace:
    """Heat and a cap both lower the clock; the lower of the two clocks is the one that counts."""
    power_speed = predict_speed(max(cap_fraction, least_cap_fraction(device)))
    if heat_speed < power_speed:
        return Pace(heat_speed, LimitedBy.HEAT)
    return Pace(power_speed, LimitedBy.POWER if power_speed < 1.0 else LimitedBy.NONE)
