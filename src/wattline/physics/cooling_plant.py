"""Cooling plant: what does a hall take on top of its IT, and can it hold its supply, in this weather?

Outside air cools for nothing but fans and pumps as long as it is an approach below the set point. Above that
a chiller takes what the air cannot, more of it with every kelvin, and works harder for it as the lift grows.
Every figure by kind is assumed: with weather of the temperate sort and a hall that is mostly full, the mean
of a year lands inside what is published for the kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from wattline.facility import CoolingKind, Loop
from wattline.physics.power import predict_rectifier_watts
from wattline.physics.weather import Weather

_KELVIN = 273.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """How one kind of cooling gives its heat away; shares are of IT watts, assumed."""

    evaporative: bool  # a tower follows the wet bulb, a dry cooler the dry bulb
    approach_kelvin: float  # supply above outside, through every exchanger between, without a chiller
    rise_kelvin: float  # return above supply: where outside air no longer helps at all
    design_outside_celsius: float  # the hottest that the plant was bought for
    running_share: float  # fans and pumps, following the heat
    standing_share: float  # of the loop's capacity: what runs whether or not there is heat


PLANTS = {
    CoolingKind.AIR: Plant(
        evaporative=True,
        approach_kelvin=15.0,
        rise_kelvin=12.0,
        design_outside_celsius=27.0,
        running_share=0.27,
        standing_share=0.10,
    ),
    CoolingKind.REAR_DOOR: Plant(
        evaporative=True,
        approach_kelvin=9.0,
        rise_kelvin=8.0,
        design_outside_celsius=27.0,
        running_share=0.13,
        standing_share=0.06,
    ),
    CoolingKind.DIRECT_TO_CHIP: Plant(
        evaporative=False,
        approach_kelvin=9.0,
        rise_kelvin=10.0,
        design_outside_celsius=40.0,
        running_share=0.045,
        standing_share=0.02,
    ),
    CoolingKind.IMMERSION: Plant(
        evaporative=False,
        approach_kelvin=9.0,
        rise_kelvin=8.0,
        design_outside_celsius=40.0,
        running_share=0.012,
        standing_share=0.004,
    ),
}
# Assumed: half of what Carnot allows, between the worst and the best that chillers are sold with.
_CARNOT_SHARE = 0.5
_WORST_PERFORMANCE, _BEST_PERFORMANCE = 2.0, 12.0
_EVAPORATOR_KELVIN, _CONDENSER_KELVIN = 4.0, 10.0

_RECTIFIER_RATING_WATTS = 12_500.0  # assumed: how much of a hall shares one rectifier's standing loss
# A ratio to nothing is infinite: below this part of its capacity a hall's overhead is not told apart.
LEAST_LOAD_FRACTION = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooling:
    """What the loops of a site are, together."""

    capacity_watts: float
    standing_watts: float
    parts: tuple[tuple[CoolingKind, float, float], ...]  # kind, set point in °C, share of the capacity


def outside_celsius(kind: CoolingKind, weather: Weather) -> float:
    """The temperature that counts outside for this kind of cooling."""
    return weather.wet_bulb_celsius if PLANTS[kind].evaporative else weather.dry_bulb_celsius


def predict_supply_celsius(loop: Loop, weather: Weather) -> float:
    """The set point, and a kelvin more for each kelvin that outside is beyond what the plant can hold."""
    plant = PLANTS[loop.kind]
    # A loop this warm needs no chiller, so the chiller's limit is not its own.
    held_up_to = max(plant.design_outside_celsius, loop.supply_celsius - plant.approach_kelvin)
    return loop.supply_celsius + max(0.0, outside_celsius(loop.kind, weather) - held_up_to)


def predict_chilled_fraction(kind: CoolingKind, set_point_celsius: float, outside: float) -> float:
    """The part of the heat that outside air cannot take: from none to all over the loop's own rise."""
    plant = PLANTS[kind]
    missing_kelvin = outside + plant.approach_kelvin - set_point_celsius
    return max(0.0, min(1.0, missing_kelvin / plant.rise_kelvin))


def predict_chiller_performance(set_point_celsius: float, outside: float) -> float:
    """Heat moved for each watt: the more, the less it has to be lifted."""
    cold_kelvin = set_point_celsius - _EVAPORATOR_KELVIN + _KELVIN
    lift_kelvin = outside + _CONDENSER_KELVIN + _KELVIN - cold_kelvin
    if lift_kelvin <= 0.0:
        return _BEST_PERFORMANCE
    return max(_WORST_PERFORMANCE, min(_BEST_PERFORMANCE, _CARNOT_SHARE * cold_kelvin / lift_kelvin))


@lru_cache(maxsize=65536)  # a year of hours for a few kinds and set points; asked at every change of load
def predict_running_share(kind: CoolingKind, set_point_celsius: float, outside: float) -> float:
    """Cooling watts for each watt of heat, besides what stands."""
    chilled = predict_chilled_fraction(kind, set_point_celsius, outside)
    return PLANTS[kind].running_share + chilled / predict_chiller_performance(set_point_celsius, outside)


def cooling_of(loops: Sequence[Loop]) -> Cooling:
    """The loops of one site, in one value that does not grow with their number."""
    capacity: defaultdict[tuple[CoolingKind, float], float] = defaultdict(float)
    for loop in loops:
        capacity[loop.kind, loop.supply_celsius] += loop.capacity_watts
    whole_watts = sum(capacity.values())
    return Cooling(
        capacity_watts=whole_watts,
        standing_watts=sum(PLANTS[kind].standing_share * watts for (kind, _), watts in capacity.items()),
        parts=tuple((*alike, watts / whole_watts) for alike, watts in capacity.items()),
    )


def predict_overhead(cooling: Cooling, weather: Weather, it_watts: float) -> float:
    """PUE of a site now: all that enters it over what its IT draws, spread over its loops by capacity."""
    load_watts = max(it_watts, LEAST_LOAD_FRACTION * cooling.capacity_watts)
    running_share = sum(
        share * predict_running_share(kind, set_point, outside_celsius(kind, weather))
        for kind, set_point, share in cooling.parts
    )
    electrical_watts = predict_distribution_watts(load_watts, cooling.capacity_watts)
    return running_share + (electrical_watts + cooling.standing_watts) / load_watts


def predict_distribution_watts(load_watts: float, capacity_watts: float) -> float:
    """What the rectifiers of a hall of this size take in to give `load_watts`."""
    rectifiers = capacity_watts / _RECTIFIER_RATING_WATTS
    return rectifiers * predict_rectifier_watts(load_watts / rectifiers)


def predict_tue(pue: float, it_watts: float, fan_watts: float, supply_loss_watts: float) -> float:
    """PUE over what truly computes: fans and power supplies inside the boxes count as overhead too."""
    compute_watts = it_watts - fan_watts - supply_loss_watts
    if compute_watts <= 0.0:
        raise ValueError(
            f"fans and losses of {fan_watts + supply_loss_watts:g} W leave nothing of {it_watts:g} W"
        )
    return pue * it_watts / compute_watts
