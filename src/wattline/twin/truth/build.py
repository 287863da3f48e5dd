"""Build: the floor of a plant, every node idle and at thermal rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from wattline.facility import DEVICES, CoolingKind, Device, Loop, Node, Rack, Site
from wattline.physics import LoopParameters, ThermalParameters, thermal_parameters
from wattline.physics.recirculation import predict_recirculation_kelvin
from wattline.state import Plant
from wattline.twin.truth.breaker import Breaker, rack_breaker, supply_breaker
from wattline.twin.truth.energy import SiteEnergyMeter
from wattline.twin.truth.floor import Floor
from wattline.twin.truth.heat import review
from wattline.twin.truth.kind import Kind
from wattline.twin.truth.loop import TrueLoop
from wattline.twin.truth.lots import (
    COOLING_WIDTH,
    LOOP_CONDUCTANCE_WIDTH,
    RESISTANCE_WIDTH,
    TIME_CONSTANT_WIDTH,
    Lots,
)
from wattline.twin.truth.node import TrueNode, TrueRack
from wattline.twin.truth.ports import Surroundings
from wattline.twin.truth.power import find_carriers, reset, trip
from wattline.twin.truth.ramp import RampMeter

# Nothing draws more than its nameplate by more than this: busy GPUs exceed their rating by a tenth.
_BEYOND_NAMEPLATE = 1.3
_ANY_DEVICE = next(iter(DEVICES.values()))


def build_floor(
    plant: Plant, lots: Lots, at: float, surroundings: Mapping[str, Surroundings], asleep: float = 1.0
) -> Floor:
    floor = Floor()
    for site in plant.facility.sites:
        around = surroundings.get(site.name)
        floor.sites[site.name] = SiteEnergyMeter(site, around, at)
        loops = {}
        for loop in site.loops:
            number = plant.resource_number[loop.name]
            loops[loop.name] = _loop(floor, number, loop, _nominal(site, loop, lots), at)
            if around is not None:
                loops[loop.name].set_supply(around.supply_celsius(loop, at))
        _add_supplies(floor, plant, site)
        _add_racks(floor, plant, site, loops, at)
        # What is rented draws for us while somebody uses it.
        _add_nodes(floor, plant, site, lots, at, asleep if site.cloud is None else 0.0)
    _come_to_rest(floor, at)
    floor.ramps = {number: RampMeter(at, floor.breakers[number].watts) for number in plant.ramped}
    return floor


def _nominal(site: Site, loop: Loop, lots: Lots) -> ThermalParameters:
    """Any device stands for all: how fast dies follow, and how that depends on flow, is the mounting's."""
    stated = thermal_parameters(_ANY_DEVICE, loop, site.thermal_time_scale)
    conductance = lots.factor(LOOP_CONDUCTANCE_WIDTH, f"conductance/{loop.name}")
    slowness = lots.factor(TIME_CONSTANT_WIDTH, f"coolant-seconds/{loop.name}")
    return replace(
        stated,
        loop=LoopParameters(
            watts_per_kelvin=stated.loop.watts_per_kelvin * conductance,
            joules_per_kelvin=stated.loop.joules_per_kelvin * conductance * slowness,
        ),
        joules_per_kelvin=stated.joules_per_kelvin
        * lots.factor(TIME_CONSTANT_WIDTH, f"die-seconds/{loop.name}"),
    )


def _loop(floor: Floor, number: int, loop: Loop, nominal: ThermalParameters, at: float) -> TrueLoop:
    built = TrueLoop(number, loop, nominal, at)
    built.slot = floor.agenda.add_slot(partial(review, floor, built))
    floor.loops[number] = built
    return built


def _add_supplies(floor: Floor, plant: Plant, site: Site) -> None:
    for supply in site.supplies:  # feeds first, then what hangs on them
        parent = floor.breakers[plant.resource_number[supply.parent]] if supply.parent else None
        number = plant.resource_number[supply.name]
        _add_breaker(floor, supply_breaker(number, supply, parent, floor.agenda))


def _add_breaker(floor: Floor, breaker: Breaker) -> None:
    breaker.trip_slot = floor.agenda.add_slot(partial(trip, floor, breaker))
    breaker.reset_slot = floor.agenda.add_slot(partial(reset, floor, breaker))
    floor.breakers[breaker.number] = breaker


def _add_racks(floor: Floor, plant: Plant, site: Site, loops: Mapping[str, TrueLoop], at: float) -> None:
    rows: dict[str, list[TrueRack]] = {}
    for rack in site.racks:
        number = plant.resource_number[rack.name]
        _add_breaker(floor, rack_breaker(number, rack, floor.agenda))
        supplies = tuple(floor.breakers[plant.resource_number[name]] for name in rack.supplies)
        built = TrueRack(rack, floor.breakers[number], supplies, loops[rack.loop], at)
        built.hang_on(find_carriers(built))
        floor.racks[rack.name] = built
        rows.setdefault(rack.row, []).append(built)
    for row in rows.values():
        for place, built in enumerate(row):
            beside = row[max(0, place - 1) : place] + row[place + 1 : place + 2]
            if _is_air(built):
                built.neighbours = tuple(rack for rack in beside if _is_air(rack))


def _is_air(rack: TrueRack) -> bool:
    """A rear door or a cold plate takes the heat before it reaches anyone."""
    return rack.loop.loop.kind is CoolingKind.AIR


def _add_nodes(floor: Floor, plant: Plant, site: Site, lots: Lots, at: float, asleep: float) -> None:
    kinds: dict[tuple[Device | None, int, float, CoolingKind], Kind] = {}
    for number in plant.nodes_of_site[site.name]:
        spot = plant.spots[number]
        node, loop = spot.node, spot.loop
        make = (node.device, node.gpus, node.other_watts, loop.kind)
        if make not in kinds:
            sent_asleep = 1.0 if site.sleep is None else site.sleep.asleep
            kinds[make] = Kind(node, loop, site.name, lots, asleep, sent_asleep)
        rack = floor.racks[spot.rack.name]
        built = TrueNode(
            number=number,
            name=node.name,
            kind=kinds[make],
            loop=floor.loops[spot.loop_resource],
            rack=rack,
            site=floor.sites[site.name],
            kelvin_per_watt=_kelvin_per_watt(node, spot.site, loop, lots),
            gpus_free=node.gpus,
            at=at,
        )
        floor.nodes.append(built)
        rack.nodes.append(built)
        rack.idle_watts += built.kind.idle_box_watts
        built.loop.nodes.append(built)


def _kelvin_per_watt(node: Node, site: Site, loop: Loop, lots: Lots) -> float:
    if node.device is None or not node.gpus:
        return 0.0
    stated = thermal_parameters(node.device, loop, site.thermal_time_scale).kelvin_per_watt
    of_device = lots.factor(RESISTANCE_WIDTH, f"resistance/{loop.name}/{node.device.name}")
    return stated * of_device * lots.factor(COOLING_WIDTH, f"cooling/{node.name}")


def _come_to_rest(floor: Floor, at: float) -> None:
    for node in floor.nodes:
        floor.refresh(node, at)
    for node in floor.nodes:
        node.excess_kelvin = node.driven_kelvin
        floor.drive(node)
    for loop in floor.loops.values():
        loop.rest()
    for rack in floor.racks.values():
        most_watts = sum(_BEYOND_NAMEPLATE * _nameplate_watts(beside.rack) for beside in rack.neighbours)
        rack.loop.most_rise_kelvin = max(rack.loop.most_rise_kelvin, predict_recirculation_kelvin(most_watts))


def _nameplate_watts(rack: Rack) -> float:
    return sum(node.nameplate_watts for node in rack.nodes)
