"""Power: what does a GPU or a node draw, and how fast is it under a power cap?"""

from __future__ import annotations

from bisect import bisect_right

from wattline.facility import Device

# Throughput under a cap, relative to none: median of 68 training configurations on V100s, measured.
# Below 40 % nothing was measured; a straight line to the origin keeps the cliff that begins there.
_CAP_FRACTIONS = (0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_SPEEDS = (0.0, 0.725, 0.853, 0.899, 0.941, 0.965, 0.987, 1.0)

# Servers measured between 320 W and 911 W: about a third of a box's own draw does not follow its work.
IDLE_OTHER_FRACTION = 0.35

# Losses of the Frontier model: a fixed part and an efficiency for each stage.
_NODE_SUPPLY_WATTS, _NODE_SUPPLY_EFFICIENCY = 13.0, 0.98
_RECTIFIER_WATTS, _RECTIFIER_EFFICIENCY = 17.0, 0.96


def least_cap_fraction(device: Device) -> float:
    """The lowest cap that the device accepts, as a share of its limit."""
    return device.least_limit_watts / device.limit_watts


def predict_gpu_watts(device: Device, utilisation: float, cap_fraction: float) -> float:
    """Draw between idle and the limit by utilisation; a cap cuts it off, down to the least limit."""
    wanted_watts = device.idle_watts + utilisation * (device.limit_watts - device.idle_watts)
    return min(wanted_watts, max(cap_fraction * device.limit_watts, device.least_limit_watts))


def predict_speed(cap_fraction: float) -> float:
    """Throughput at a power cap, relative to none."""
    if cap_fraction >= 1.0:
        return 1.0
    if cap_fraction <= 0.0:
        return 0.0
    upper = bisect_right(_CAP_FRACTIONS, cap_fraction)
    left, right = _CAP_FRACTIONS[upper - 1], _CAP_FRACTIONS[upper]
    way = (cap_fraction - left) / (right - left)
    return _SPEEDS[upper - 1] + way * (_SPEEDS[upper] - _SPEEDS[upper - 1])


def cap_for_watts(device: Device, watts: float) -> float | None:
    """The loosest cap under which the device stays within `watts`; None where none is low enough."""
    if watts < device.least_limit_watts:
        return None
    return min(1.0, watts / device.limit_watts)


def predict_other_watts(other_watts: float, activity: float) -> float:
    """What a box draws besides its GPUs, given how busy it is (0 to 1)."""
    return other_watts * (IDLE_OTHER_FRACTION + (1.0 - IDLE_OTHER_FRACTION) * activity)


def predict_node_supply_watts(load_watts: float) -> float:
    """What a node's own power supply takes in to give `load_watts`."""
    return (load_watts + _NODE_SUPPLY_WATTS) / _NODE_SUPPLY_EFFICIENCY


def predict_rectifier_watts(load_watts: float) -> float:
    """What the rectifier before it takes in to give `load_watts`."""
    return (load_watts + _RECTIFIER_WATTS) / _RECTIFIER_EFFICIENCY
