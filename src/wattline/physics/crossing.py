"""Crossing: how long until a die reaches a temperature, if nothing changes?"""

from __future__ import annotations

import math

from wattline.physics.coolant import (
    ThermalInputs,
    coolant_time_constant_seconds,
    is_stopped,
    predict_steady_coolant,
)
from wattline.physics.heat import ThermalParameters, ThermalState, advance
from wattline.physics.lag import predict_turn_seconds

_RELATIVE_TOLERANCE = 1e-7
_DOUBLINGS = 64


def predict_seconds_to(
    celsius: float, parameters: ThermalParameters, state: ThermalState, inputs: ThermalInputs
) -> float | None:
    """Seconds until the die is at `celsius` or above: 0 where it is already, None where it never will be.

    The die's path is a sum of two exponentials, or one and a ramp, so it turns at most once. Either it ends
    above the mark and, once there, stays; or it can only touch the mark before the turn.
    """
    if state.die_celsius >= celsius:
        return 0.0

    def is_there(seconds: float) -> bool:
        return advance(parameters, state, inputs, seconds).die_celsius >= celsius

    if _ends_at(parameters, state, inputs) > celsius:
        late = parameters.resistance(inputs.flow_fraction) * parameters.joules_per_kelvin
        for _ in range(_DOUBLINGS):
            if is_there(late):
                break
            late *= 2.0
        else:
            return None  # above the mark by less than a float can tell
    else:
        late = _turns_after_seconds(parameters, state, inputs)
        if not is_there(late):
            return None
    early = 0.0
    while late - early > _RELATIVE_TOLERANCE * late:
        middle = 0.5 * (early + late)
        if is_there(middle):
            late = middle
        else:
            early = middle
    return late


def _ends_at(parameters: ThermalParameters, state: ThermalState, inputs: ThermalInputs) -> float:
    above_kelvin = parameters.resistance(inputs.flow_fraction) * inputs.device_watts
    if not is_stopped(inputs.flow_fraction):
        return predict_steady_coolant(parameters.loop, inputs) + above_kelvin
    return math.inf if inputs.loop_watts > 0 else state.coolant_celsius + above_kelvin


def _turns_after_seconds(parameters: ThermalParameters, state: ThermalState, inputs: ThermalInputs) -> float:
    """When the die's slope changes sign; 0 where it never does. Asked where the die does not end higher."""
    if is_stopped(inputs.flow_fraction):
        return 0.0
    resistance = parameters.resistance(inputs.flow_fraction)
    die_seconds = resistance * parameters.joules_per_kelvin
    coolant_seconds = coolant_time_constant_seconds(parameters.loop, inputs.flow_fraction)
    gap_kelvin = predict_steady_coolant(parameters.loop, inputs) - state.coolant_celsius
    drive_kelvin = state.coolant_celsius + resistance * inputs.device_watts - state.die_celsius
    return predict_turn_seconds(drive_kelvin, gap_kelvin, coolant_seconds, die_seconds)
