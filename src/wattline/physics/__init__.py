"""How watts, heat, coolant and packets behave. Equations only: no state, no clock."""

from wattline.physics.coolant import (
    LoopParameters,
    ThermalInputs,
    advance_coolant,
    loop_parameters,
    predict_capacity_watts,
    predict_steady_coolant,
)
from wattline.physics.cooling_plant import (
    Cooling,
    cooling_of,
    predict_overhead,
    predict_supply_celsius,
    predict_tue,
)
from wattline.physics.cost import carbon_kg, compute_usd, energy_usd, facility_kwh
from wattline.physics.crossing import predict_seconds_to
from wattline.physics.heat import (
    ThermalParameters,
    ThermalState,
    advance,
    predict_steady,
    thermal_parameters,
)
from wattline.physics.network import share_fairly, share_link, transfer_seconds
from wattline.physics.power import (
    cap_for_watts,
    least_cap_fraction,
    predict_gpu_watts,
    predict_node_supply_watts,
    predict_other_watts,
    predict_rectifier_watts,
    predict_speed,
)
from wattline.physics.throttle import (
    HeatState,
    LimitedBy,
    Pace,
    predict_heat_speed,
    predict_heat_state,
    predict_pace,
)
from wattline.physics.weather import (
    Weather,
    predict_dew_point,
    predict_warmed,
    predict_weather,
    predict_wet_bulb,
)

__all__ = [
    "Cooling",
    "HeatState",
    "LimitedBy",
    "LoopParameters",
    "Pace",
    "ThermalInputs",
    "ThermalParameters",
    "ThermalState",
    "Weather",
    "advance",
    "advance_coolant",
    "cap_for_watts",
    "carbon_kg",
    "compute_usd",
    "cooling_of",
    "energy_usd",
    "facility_kwh",
    "least_cap_fraction",
    "loop_parameters",
    "predict_capacity_watts",
    "predict_dew_point",
    "predict_gpu_watts",
    "predict_heat_speed",
    "predict_heat_state",
    "predict_node_supply_watts",
    "predict_other_watts",
    "predict_overhead",
    "predict_pace",
    "predict_rectifier_watts",
    "predict_seconds_to",
    "predict_speed",
    "predict_steady",
    "predict_steady_coolant",
    "predict_supply_celsius",
    "predict_tue",
    "predict_warmed",
    "predict_weather",
    "predict_wet_bulb",
    "share_fairly",
    "share_link",
    "thermal_parameters",
    "transfer_seconds",
]
