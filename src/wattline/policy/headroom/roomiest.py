"""Roomiest: for a job that fits nowhere, which rack of a zone has most left, and how far off is it at least?

A zone is looked at once for each number of GPUs, and again only when something has changed in its racks.
"""

from __future__ import annotations

import math
from functools import lru_cache

from wattline.policy.headroom.power import Headroom
from wattline.policy.headroom.rooms import Room
from wattline.spec.policy import Thresholds
from wattline.state import JobRequest, Plant, Snapshot, Stamp


class _Found:
    """The roomiest rack of a zone, as it was at some changes."""

    __slots__ = ("changes", "least_cpus", "node")

    def __init__(self, changes: int, node: int | None, least_cpus: float) -> None:
        self.changes, self.node, self.least_cpus = changes, node, least_cpus


class Roomiest:
    """Kept with the state."""

    __slots__ = ("_known", "_plant", "_stamps", "thresholds")

    def __init__(self, plant: Plant, thresholds: Thresholds) -> None:
        self._plant, self.thresholds = plant, thresholds
        self._known: dict[tuple[int, int], _Found] = {}  # by zone and GPUs
        self._stamps: list[Stamp | None] = [None] * len(plant.sites)

    @staticmethod
    def of(snapshot: Snapshot, thresholds: Thresholds) -> Roomiest:
        found = snapshot.lasting.get(Roomiest)
        if not isinstance(found, Roomiest) or found.thresholds is not thresholds:
            found = snapshot.lasting[Roomiest] = Roomiest(snapshot.plant, thresholds)
        return found

    def node(self, snapshot: Snapshot, headroom: Headroom, request: JobRequest, zone: int) -> int | None:
        """A node with enough GPUs and CPUs free, of the rack of a zone that has most watts left."""
        site = self._plant.zones[zone].site
        stamp, before = snapshot.stamp(site, self.thresholds.reading_max_age), self._stamps[site]
        if before is None or before[2:] != stamp[2:]:  # what is believed has changed everywhere
            for other, number in list(self._known):
                if self._plant.zones[other].site == site:
                    del self._known[other, number]
        self._stamps[site] = stamp
        gpus, changes = request.gpus, snapshot.zone_changes(zone)
        known = self._known.get((zone, gpus))
        if known is None or known.changes != changes:
            known = self._known[zone, gpus] = self._look(snapshot, headroom, zone, gpus, 0.0, changes)
        if known.node is not None and known.least_cpus < request.cpus:
            known = self._look(snapshot, headroom, zone, gpus, request.cpus, changes)
        return known.node

    def _look(
        self, snapshot: Snapshot, headroom: Headroom, zone: int, gpus: int, cpus: float, changes: int
    ) -> _Found:
        bays = self._plant.bays
        best: tuple[float, int, int] | None = None  # watts left, and the node, the tightest fit first
        least_cpus = math.inf
        for number in self._plant.zones[zone].bays:
            bay = bays[number]
            met: tuple[int, int] | None = None  # GPUs free on the node that fits tightest, and its number
            for node, free in enumerate(snapshot.free_on(bay.first, bay.ends_before), bay.first):
                if free < gpus:
                    continue
                has_cpus = snapshot.cpus_free(node)
                least_cpus = min(least_cpus, has_cpus)
                if has_cpus >= cpus and (met is None or free < met[0]):
                    met = (free, node)
            if met is None:
                continue
            left = (-headroom[bay.rack_resource], *met)
            if best is None or left < best:
                best = left
        return _Found(changes, best[2] if best else None, least_cpus)


def nearest_zones(
    snapshot: Snapshot, headroom: Headroom, request: JobRequest, pool: int, room: Room
) -> list[tuple[float, int]]:
    """Zones with enough GPUs free on some node, and how far a job is from fitting there at least; the nearest
    first, and of those the one that a search meets first: by the tightest fit, then by number.

    How far: shortfalls relative to what is asked, summed.
    """
    plant, gpus, found = snapshot.plant, request.gpus, list[tuple[float, int]]()
    watts = gpus * room.each_watts
    above, on_rack = _above(plant), math.ceil(watts)
    for zone in plant.zones_of_pool[pool]:
        left = room.rack_watts(zone, gpus)
        if left < 0.0:
            continue
        missing = 0.0
        for resource, share in above[zone]:
            amount = math.ceil(watts * share)
            if headroom[resource] < amount:
                missing += (amount - headroom[resource]) / amount
        if left < on_rack:
            missing += max(0.0, on_rack - left - 1.0) / on_rack  # what is left is told in whole watts
        found.append((missing, zone))
    found.sort()
    alike = {zone for missing, zone in found if missing == found[0][0]}
    if len(alike) > 1:
        first = _first_met(snapshot, request, pool, alike)
        found.sort(key=lambda each: (each[0], each[1] != first, each[1]))
    return found


def _first_met(snapshot: Snapshot, request: JobRequest, pool: int, zones: set[int]) -> int:
    spots, bays = snapshot.plant.spots, snapshot.plant.bays
    for nodes in snapshot.nodes_by_free(pool)[request.gpus :]:
        for node in nodes:
            zone = bays[spots[node].bay].zone
            if zone in zones and snapshot.cpus_free(node) >= request.cpus:
                return zone
    return -1


@lru_cache(maxsize=8)
def _above(plant: Plant) -> list[tuple[tuple[int, float], ...]]:
    """By zone: what carries its racks, by number."""
    return [tuple(sorted(zone.above)) for zone in plant.zones]


@lru_cache(maxsize=8)
def carriers(plant: Plant) -> list[tuple[tuple[int, float], ...]]:
    """By bay: all that carries its watts, by number, and the share that each must carry."""
    found = []
    for bay in plant.bays:
        shares = dict(plant.spots[bay.first].power)
        shares[bay.loop_resource] = shares.get(bay.loop_resource, 0.0) + 1.0
        found.append(tuple(sorted(shares.items())))
    return found
