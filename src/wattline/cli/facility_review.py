"""Does a facility promise more than it can carry? Ratios, and what a planner would want to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wattline.facility import Facility, Rack, Site
from wattline.state import Plant, ResourceKind
from wattline.units import format_watts


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReview:
    """One site in numbers. Oversubscription is nameplate over cap: above 1, not all can run flat out."""

    site: str
    telemetry: str
    racks: int
    nodes: int
    gpus: int
    nameplate_watts: float
    feed_watts: float  # what its feeds carry for hours, redundant ones counted once
    loop_watts: float
    feed_oversubscription: float
    loop_oversubscription: float
    rack_oversubscription: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    facility: str
    gpus: int
    sites: tuple[SiteReview, ...]
    warnings: tuple[str, ...]


def review_facility(facility: Facility) -> Review:
    plant = Plant(facility)
    return Review(
        facility=facility.name,
        gpus=facility.gpus,
        sites=tuple(_review(site, plant) for site in facility.sites if site.cloud is None),
        warnings=tuple(_warnings(facility, plant)),
    )


def _review(site: Site, plant: Plant) -> SiteReview:
    nodes = [node for rack in site.racks for node in rack.nodes]
    redundant = all(rack.redundant for rack in site.racks)
    feeds = [supply.usable_watts for supply in site.supplies if supply.parent is None]
    return SiteReview(
        site=site.name,
        telemetry=site.telemetry,
        racks=len(site.racks),
        nodes=len(nodes),
        gpus=sum(node.gpus for node in nodes),
        nameplate_watts=sum(node.nameplate_watts for node in nodes),
        feed_watts=min(feeds) if redundant else sum(feeds),
        loop_watts=sum(loop.capacity_watts for loop in site.loops),
        feed_oversubscription=_worst_ratio(site, plant, ResourceKind.SUPPLY),
        loop_oversubscription=_worst_ratio(site, plant, ResourceKind.LOOP),
        rack_oversubscription=_worst_ratio(site, plant, ResourceKind.RACK),
    )


def _worst_ratio(site: Site, plant: Plant, kind: ResourceKind) -> float:
    return max(
        resource.worst / resource.cap
        for number, resource in enumerate(plant.resources)
        if resource.kind is kind and plant.site_of_resource[number] == site.name
    )


def _warnings(facility: Facility, plant: Plant) -> Iterator[str]:
    linked = {site for link in facility.links for site in link.between}
    for site in facility.sites:
        if site.cloud is not None:  # what is rented promises no more than it has
            continue
        yield from _power_warnings(site, plant)
        yield from _loop_warnings(site, plant)
        if len(facility.sites) > 1 and site.name not in linked:
            yield f"{site.name}: no link leads there, so nothing can move in or out"


def _power_warnings(site: Site, plant: Plant) -> Iterator[str]:
    supplies = {supply.name: supply for supply in site.supplies}
    caps = dict.fromkeys(supplies, 0.0)
    for rack in site.racks:
        for name, share in _shares(rack, plant):
            caps[name] += share * rack.cap_watts
            usable = supplies[name].usable_watts
            if share * rack.cap_watts > usable:
                yield (
                    f"{rack.name}: its cap {format_watts(rack.cap_watts)} is above the "
                    f"{format_watts(usable)} that {name} carries for hours"
                )
    for name, total in caps.items():
        usable = supplies[name].usable_watts
        if total > usable:
            yield (
                f"{name}: the caps of its racks add up to {format_watts(total)}, it carries "
                f"{format_watts(usable)} for hours; it fills before they do"
            )


def _loop_warnings(site: Site, plant: Plant) -> Iterator[str]:
    for loop in site.loops:
        worst = plant.resources[plant.resource_number[loop.name]].worst
        if worst > loop.capacity_watts:
            yield (
                f"{loop.name}: takes {format_watts(loop.capacity_watts)} of the {format_watts(worst)} that "
                "its racks give off flat out; it fills first"
            )


def _shares(rack: Rack, plant: Plant) -> list[tuple[str, float]]:
    """What each supply above a rack must carry of it, as the ledger counts it."""
    spot = plant.spots[plant.node_number[rack.nodes[0].name]]
    return [
        (plant.resources[number].name, share)
        for number, share in spot.power
        if plant.resources[number].kind is ResourceKind.SUPPLY
    ]
