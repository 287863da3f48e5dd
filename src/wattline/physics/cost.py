"""Cost: what do joules and GPU-hours cost, in dollars and in carbon?"""

from __future__ import annotations

from wattline.units import JOULES_PER_KWH

_GRAMS_PER_KG = 1000.0


def facility_kwh(it_joules: float, pue: float) -> float:
    """What the meter at the street counts: the IT energy and all that cooling and losses add to it."""
    return it_joules * pue / JOULES_PER_KWH


def energy_usd(kwh: float, usd_per_kwh: float) -> float:
    return kwh * usd_per_kwh


def carbon_kg(kwh: float, grams_co2_per_kwh: float) -> float:
    return kwh * grams_co2_per_kwh / _GRAMS_PER_KG


def compute_usd(gpu_hours: float, usd_per_gpu_hour: float) -> float:
    return gpu_hours * usd_per_gpu_hour
