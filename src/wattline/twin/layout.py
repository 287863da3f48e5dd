"""What of a facility is worth a line in a picture? Its feeds, and where its GPUs are hot."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wattline.state import Plant

MOST_PLACES = 200  # rows that a heat map can show and a recorder can afford; beyond, racks are taken by loop


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedLine:
    """A supply that comes from outside the hall."""

    name: str
    site: str
    cap_watts: float
    resource: int  # its number in the Plant


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where heat is told for: a rack, or everything on one loop."""

    name: str
    site: str
    throttle_celsius: float  # of the GPUs there that give way first


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns of a timeline, and how to find the column of a thing."""

    sites: tuple[str, ...]
    feeds: tuple[FeedLine, ...]
    places: tuple[Place, ...]
    place_kind: str  # rack | loop
    place_of_node: tuple[int, ...]  # by plant node number; -1: it has no GPU to get hot

    @property
    def feed_of_resource(self) -> dict[int, int]:
        """The feed column of each plant resource that has one."""
        return {feed.resource: column for column, feed in enumerate(self.feeds)}


def layout_of(plant: Plant) -> Layout:
    feeds = [
        FeedLine(
            name=supply.name,
            site=site.name,
            cap_watts=supply.usable_watts,
            resource=plant.resource_number[supply.name],
        )
        for site in plant.facility.sites
        for supply in site.supplies
        if supply.parent is None
    ]
    racks = {spot.rack.name for spot in plant.spots if spot.node.device is not None}
    kind = "rack" if len(racks) <= MOST_PLACES else "loop"
    columns: dict[str, int] = {}
    sites: list[str] = []
    limits: list[float] = []
    place_of_node = []
    for spot in plant.spots:
        if spot.node.device is None:
            place_of_node.append(-1)
            continue
        name = spot.rack.name if kind == "rack" else spot.loop.name
        column = columns.setdefault(name, len(columns))
        if column == len(limits):
            sites.append(spot.site.name)
            limits.append(math.inf)
        limits[column] = min(limits[column], spot.node.device.throttle_celsius)
        place_of_node.append(column)
    return Layout(
        sites=tuple(plant.sites),
        feeds=tuple(feeds),
        places=tuple(
            Place(name=name, site=site, throttle_celsius=limit)
            for name, site, limit in zip(columns, sites, limits, strict=True)
        ),
        place_kind=kind,
        place_of_node=tuple(place_of_node),
    )
