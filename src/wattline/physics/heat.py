"""Heat: how hot is a GPU's die, given its watts and the coolant around it?

The die is a second heat capacity behind a resistance, driven by a coolant that itself moves along an
exponential (or a ramp, when the pump has stopped). The cascade is solved in closed form, so the answer
does not depend on how a span is cut into steps.
"""

from __future__ import annotations

from dataclasses import dataclass

from wattline.facility import CoolingKind, Device, Loop
from wattline.physics.coolant import (
    LoopParameters,
    ThermalInputs,
    advance_coolant,
    coolant_time_constant_seconds,
    is_stopped,
    loop_parameters,
    predict_convection,
    predict_steady_coolant,
)
from wattline.physics.lag import predict_cascaded, predict_followed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mounting:
    """How a die meets its coolant; every figure is assumed until a site fits its own."""

    liquid: bool
    time_constant_seconds: float
    flow_dependent_fraction: float


# In air a server's own fans keep blowing when the hall's flow falls, so less depends on the loop than at a
# cold plate; in a tank, convection goes on by itself.
_MOUNTINGS = {
    CoolingKind.AIR: _Mounting(liquid=False, time_constant_seconds=45.0, flow_dependent_fraction=0.3),
    CoolingKind.REAR_DOOR: _Mounting(liquid=False, time_constant_seconds=45.0, flow_dependent_fraction=0.3),
    CoolingKind.DIRECT_TO_CHIP: _Mounting(
        liquid=True, time_constant_seconds=10.0, flow_dependent_fraction=0.6
    ),
    CoolingKind.IMMERSION: _Mounting(liquid=True, time_constant_seconds=20.0, flow_dependent_fraction=0.1),
}
# Natural convection and conduction carry on as if at least this much flow were left; assumed.
_LEAST_FILM_FLOW_FRACTION = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ThermalParameters:
    """One device on one loop, at nominal flow."""

    loop: LoopParameters
    kelvin_per_watt: float  # die above coolant
    joules_per_kelvin: float
    flow_dependent_fraction: float  # of that resistance

    def resistance(self, flow_fraction: float) -> float:
        """Kelvin per watt at this flow."""
        film = predict_convection(max(flow_fraction, _LEAST_FILM_FLOW_FRACTION))
        return self.kelvin_per_watt * (1.0 + self.flow_dependent_fraction * (1.0 / film - 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ThermalState:
    coolant_celsius: float
    die_celsius: float


def thermal_parameters(device: Device, loop: Loop, time_scale: float = 1.0) -> ThermalParameters:
    """Parameters for a device on a loop; `time_scale` makes emulated heat move that much faster."""
    mounting = _MOUNTINGS[loop.kind]
    kelvin_per_watt = device.kelvin_per_watt_liquid if mounting.liquid else device.kelvin_per_watt_air
    return ThermalParameters(
        loop=loop_parameters(loop, time_scale),
        kelvin_per_watt=kelvin_per_watt,
        joules_per_kelvin=mounting.time_constant_seconds / kelvin_per_watt / time_scale,
        flow_dependent_fraction=mounting.flow_dependent_fraction,
    )


def predict_steady(parameters: ThermalParameters, inputs: ThermalInputs) -> ThermalState:
    """Where both temperatures end if nothing changes; needs flow."""
    coolant_celsius = predict_steady_coolant(parameters.loop, inputs)
    above_kelvin = parameters.resistance(inputs.flow_fraction) * inputs.device_watts
    return ThermalState(coolant_celsius=coolant_celsius, die_celsius=coolant_celsius + above_kelvin)


def advance(
    parameters: ThermalParameters, state: ThermalState, inputs: ThermalInputs, dt_seconds: float
) -> ThermalState:
    """Both temperatures `dt_seconds` later."""
    coolant_celsius = state.coolant_celsius
    resistance = parameters.resistance(inputs.flow_fraction)
    die_seconds = resistance * parameters.joules_per_kelvin
    followed = predict_followed(dt_seconds, die_seconds)
    if is_stopped(inputs.flow_fraction):
        kelvin_per_second = inputs.loop_watts / parameters.loop.joules_per_kelvin
        moved_kelvin = kelvin_per_second * (dt_seconds - die_seconds * followed)
    else:
        coolant_seconds = coolant_time_constant_seconds(parameters.loop, inputs.flow_fraction)
        gap_kelvin = predict_steady_coolant(parameters.loop, inputs) - coolant_celsius
        moved_kelvin = gap_kelvin * predict_cascaded(dt_seconds, coolant_seconds, die_seconds)
    drive_kelvin = coolant_celsius + resistance * inputs.device_watts - state.die_celsius
    return ThermalState(
        coolant_celsius=advance_coolant(parameters.loop, coolant_celsius, inputs, dt_seconds),
        die_celsius=state.die_celsius + drive_kelvin * followed + moved_kelvin,
    )
