"""Roomiest: for a job that fits nowhere, which rack of each zone has most left, and what is short there?

Each zone is looked at once for each number of GPUs, and again only when something has changed in its racks.
"""

from __future__ import annotations

import math
from functools import lru_cache

from wattline.policy.power import Headroom
from wattline.spec.policy import Thresholds
from wattline.state import JobRequest, Plant, Snapshot, Stamp

# How many GPUs are free on the first node that was met, and its number: zones are in line by this.
_Met = tuple[int, int]


class _Found:
    """The roomiest rack of a zone, as it was at some changes."""

    __slots__ = ("changes", "least_cpus", "met", "node")

    def __init__(self, changes: int, met: _Met | None, node: int, least_cpus: float) -> None:
        self.changes, self.met, self.node, self.least_cpus = changes, met, node, least_cpus


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

    def nodes(self, snapshot: Snapshot, headroom: Headroom, request: JobRequest, pool: int) -> list[int]:
        """One node with enough GPUs and CPUs free in each zone: of its rack that has most watts left.

        In the order in which a search meets the zones: tightest fit first, then by number.
        """
        site = self._plant.site_of_pool[pool]
        stamp, before = snapshot.stamp(site, self.thresholds.reading_max_age), self._stamps[site]
        if before is None or before[2:] != stamp[2:]:  # what is believed has changed everywhere
            for zone, number in list(self._known):
                if self._plant.zones[zone].site == site:
                    del self._known[zone, number]
        self._stamps[site] = stamp
        gpus, found = request.gpus, []
        for zone in self._plant.zones_of_pool[pool]:
            changes = snapshot.zone_changes(zone)
            known = self._known.get((zone, gpus))
            if known is None or known.changes != changes:
                known = self._known[zone, gpus] = self._look(snapshot, headroom, zone, gpus, 0.0, changes)
            if known.met is not None and known.least_cpus < request.cpus:
                known = self._look(snapshot, headroom, zone, gpus, request.cpus, changes)
            if known.met is not None:
                found.append((known.met, known.node))
        found.sort()
        return [node for _, node in found]

    def _look(
        self, snapshot: Snapshot, headroom: Headroom, zone: int, gpus: int, cpus: float, changes: int
    ) -> _Found:
        bays, first = self._plant.bays, None
        best: tuple[float, int, int] | None = None  # watts left, and the node, the tightest fit first
        least_cpus = math.inf
        for number in self._plant.zones[zone].bays:
            bay = bays[number]
            met: _Met | None = None
            for node, free in enumerate(snapshot.free_on(bay.first, bay.ends_before), bay.first):
                if free < gpus:
                    continue
                has_cpus = snapshot.cpus_free(node)
                least_cpus = min(least_cpus, has_cpus)
                if has_cpus >= cpus and (met is None or free < met[0]):
                    met = (free, node)
            if met is None:
                continue
            if first is None or met < first:
                first = met
            left = (-headroom[bay.rack_resource], *met)
            if best is None or left < best:
                best = left
        return _Found(changes, first, best[2] if best else -1, least_cpus)


@lru_cache(maxsize=8)
def carriers(plant: Plant) -> list[tuple[tuple[int, float], ...]]:
    """By bay: all that carries its watts, by number, and the share that each must carry."""
    found = []
    for bay in plant.bays:
        shares = dict(plant.spots[bay.first].power)
        shares[bay.loop_resource] = shares.get(bay.loop_resource, 0.0) + 1.0
        found.append(tuple(sorted(shares.items())))
    return found
