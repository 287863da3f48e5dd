"""Coolant: how warm is a loop's coolant, given its heat, its flow and its supply?

A loop is one heat capacity that loses heat to its supply: C dT/dt = heat - UA flow^0.8 (T - supply).
Without flow it only stores. Both have closed forms, exact over any span with constant inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wattline.facility import Loop

# Below this a pump counts as stopped: its time constant would be months.
STOPPED_FLOW_FRACTION = 1e-6


def predict_convection(flow_fraction: float) -> float:
    """What is left of turbulent convection: it follows flow^0.8 (Dittus and Boelter)."""
    return math.pow(flow_fraction, 0.8)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParameters:
    """A loop at nominal flow."""

    watts_per_kelvin: float
    joules_per_kelvin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ThermalInputs:
    """What drives temperatures; constant over the span that is asked about."""

    supply_celsius: float
    flow_fraction: float  # what is left of the nominal flow
    loop_watts: float  # heat of everything on the loop
    device_watts: float = 0.0  # heat of the one device whose die is followed


def loop_parameters(loop: Loop, time_scale: float = 1.0) -> LoopParameters:
    """Read UA and heat capacity off what a facility states: capacity, approach, time constant."""
    watts_per_kelvin = loop.capacity_watts / loop.approach_kelvin
    return LoopParameters(
        watts_per_kelvin=watts_per_kelvin,
        joules_per_kelvin=watts_per_kelvin * loop.time_constant_seconds / time_scale,
    )


def predict_capacity_watts(capacity_watts: float, flow_fraction: float) -> float:
    """The heat a loop carries at its nominal approach when only part of its flow is left."""
    return capacity_watts * predict_convection(flow_fraction)


def is_stopped(flow_fraction: float) -> bool:
    return flow_fraction < STOPPED_FLOW_FRACTION


def coolant_time_constant_seconds(parameters: LoopParameters, flow_fraction: float) -> float:
    """Less flow takes heat away more slowly: the same heat capacity behind a smaller UA."""
    return parameters.joules_per_kelvin / (parameters.watts_per_kelvin * predict_convection(flow_fraction))


def predict_steady_coolant(parameters: LoopParameters, inputs: ThermalInputs) -> float:
    """Where the coolant ends if nothing changes; needs flow."""
    carried_watts_per_kelvin = parameters.watts_per_kelvin * predict_convection(inputs.flow_fraction)
    return inputs.supply_celsius + inputs.loop_watts / carried_watts_per_kelvin


def advance_coolant(
    parameters: LoopParameters, coolant_celsius: float, inputs: ThermalInputs, dt_seconds: float
) -> float:
    """The coolant's temperature `dt_seconds` later."""
    if is_stopped(inputs.flow_fraction):
        return coolant_celsius + inputs.loop_watts / parameters.joules_per_kelvin * dt_seconds
    time_constant_seconds = coolant_time_constant_seconds(parameters, inputs.flow_fraction)
    gap_kelvin = predict_steady_coolant(parameters, inputs) - coolant_celsius
    return coolant_celsius - gap_kelvin * math.expm1(-dt_seconds / time_constant_seconds)
