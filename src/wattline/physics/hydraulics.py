"""Hydraulics: how much coolant carries a rack's heat, and what does it take to pump it?

Flow follows from the energy balance: heat = density x heat capacity x flow x rise. In turbulent flow the
pressure drop of a given path goes with flow^n, n just below 2, and with the fluid's density^(n-1) and
viscosity^(2-n) (Blasius). Pump power is drop times flow over the pump's efficiency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_LITRES_PER_MINUTE_PER_M3_PER_SECOND = 60_000.0
PASCALS_PER_PSI = 6894.757

# Pump, motor and drive together; assumed, no source at hand.
PUMP_EFFICIENCY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fluid:
    """A coolant at 40 °C, about the middle of a direct-to-chip loop."""

    name: str
    kg_per_m3: float
    joules_per_kg_kelvin: float
    pascal_seconds: float

    @property
    def joules_per_m3_kelvin(self) -> float:
        return self.kg_per_m3 * self.joules_per_kg_kelvin


WATER = Fluid(name="water", kg_per_m3=992.2, joules_per_kg_kelvin=4179.0, pascal_seconds=0.653e-3)  # tables
# Density and heat capacity from one second-hand source; viscosity is assumed.
PG25 = Fluid(name="PG25", kg_per_m3=1022.5, joules_per_kg_kelvin=3920.0, pascal_seconds=1.3e-3)


@dataclass(frozen=True, slots=True, kw_only=True)
class PressureCurve:
    """A rack's path, from its supply to its return, measured with water."""

    pascals_at_100_litres_per_minute: float
    exponent: float


# Lenovo LP2357, one source: the 25 °C to 45 °C points with 121.5 kW in water, fitted over all five.
GB300_NVL72_CURVE = PressureCurve(pascals_at_100_litres_per_minute=42_500.0, exponent=1.90)


def predict_flow_litres_per_minute(
    heat_watts: float, supply_celsius: float, return_celsius: float, fluid: Fluid = WATER
) -> float:
    """The flow that carries `heat_watts` away; infinite where the coolant may not warm up at all."""
    rise_kelvin = return_celsius - supply_celsius
    if rise_kelvin <= 0.0:
        return math.inf if heat_watts > 0.0 else 0.0
    m3_per_second = heat_watts / (fluid.joules_per_m3_kelvin * rise_kelvin)
    return m3_per_second * _LITRES_PER_MINUTE_PER_M3_PER_SECOND


def predict_pressure_drop_pascals(
    curve: PressureCurve, flow_litres_per_minute: float, fluid: Fluid = WATER
) -> float:
    """What the path takes at this flow."""
    water_pascals = curve.pascals_at_100_litres_per_minute * math.pow(
        flow_litres_per_minute / 100.0, curve.exponent
    )
    denser = math.pow(fluid.kg_per_m3 / WATER.kg_per_m3, curve.exponent - 1.0)
    thicker = math.pow(fluid.pascal_seconds / WATER.pascal_seconds, 2.0 - curve.exponent)
    return water_pascals * denser * thicker


def predict_pump_watts(pressure_drop_pascals: float, flow_litres_per_minute: float) -> float:
    """What a pump takes in to push this flow through this drop."""
    m3_per_second = flow_litres_per_minute / _LITRES_PER_MINUTE_PER_M3_PER_SECOND
    return pressure_drop_pascals * m3_per_second / PUMP_EFFICIENCY


def fit_pressure_curve(points: Sequence[tuple[float, float]]) -> PressureCurve:
    """The curve nearest to points of (litres per minute, pascals) with water: a line in logarithms."""
    flows = [math.log(flow / 100.0) for flow, _ in points]
    drops = [math.log(drop) for _, drop in points]
    mean_flow, mean_drop = sum(flows) / len(points), sum(drops) / len(points)
    covered = sum((flow - mean_flow) ** 2 for flow in flows)
    exponent = sum((f - mean_flow) * (d - mean_drop) for f, d in zip(flows, drops, strict=True)) / covered
    return PressureCurve(
        pascals_at_100_litres_per_minute=math.exp(mean_drop - exponent * mean_flow), exponent=exponent
    )
