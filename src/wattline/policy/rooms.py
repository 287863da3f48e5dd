"""Rooms: how many GPUs do the racks, and all that is above them, still carry in each pool?

Most of a well-filled facility is full, and most searches would find that out again. Here it is worked out
when it is asked for, and anew only for what has changed since.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wattline.policy.power import Headroom
from wattline.spec.policy import Thresholds
from wattline.state import JobRequest, Plant, Snapshot, Stamp, peak_watts_on

_MOST_KEPT = 10_000
# Watts are whole numbers: a quotient this close to the next one is that.
_ROUNDING = 1e-9
_ANY = 1 << 40


class Room:
    """What a pool still carries of GPUs that draw so many watts each, heat and CPUs aside."""

    __slots__ = (
        "_above",
        "_bays",
        "_headroom",
        "_plant",
        "_pool",
        "_shared_watts",
        "_snapshot",
        "_stamp",
        "_sums",
        "_watts",
        "_zones",
    )

    def __init__(self, plant: Plant, pool: int, watts: float) -> None:
        self._plant, self._pool = plant, pool
        self._watts = watts  # that one GPU adds to what idles
        # By bay: changes of its rack, GPUs that it carries, the most on one node, and on all its nodes.
        self._bays: dict[int, tuple[int, int, int, int]] = {}
        self._zones: dict[int, tuple[int, int, int]] = {}  # by zone: changes, single and spread of its racks
        # Below, what holds for one stamp.
        self._above: dict[int, tuple[int, float]] = {}  # by zone, GPUs that are carried above it, and watts
        self._shared_watts: float | None = None  # left of what is above all zones
        self._sums: tuple[int, int] | None = None
        self._stamp: Stamp | None = None

    def look(self, snapshot: Snapshot, headroom: Headroom, stamp: Stamp) -> None:
        """Look at things as they are now; all that did not change since the last look is still known."""
        before, self._stamp = self._stamp, stamp
        self._snapshot, self._headroom = snapshot, headroom
        if stamp == before:
            return
        self._above.clear()
        self._shared_watts = self._sums = None
        if before is None or stamp[2:] != before[2:]:  # what is believed has changed everywhere
            self._bays.clear()
            self._zones.clear()

    @property
    def most(self) -> int:
        """The biggest job that may fit."""
        return max(self.sums())

    @property
    def most_above(self) -> int:
        """The biggest job that what is above all racks carries: quick, and never too small."""
        return self._gpus(self._shared())

    def sums(self) -> tuple[int, int]:
        """The most GPUs on one node, and over several of them."""
        if self._sums is None:
            self._sums = self._add_up()
        return self._sums

    def is_full(self, gpus: int) -> bool:
        """Whether it is known already that so many GPUs fit on no node."""
        return self._sums is not None and self._sums[0] < gpus

    def above(self, zone: int) -> tuple[int, float]:
        """What is left above the racks of a zone: GPUs that it carries, and watts of the tightest."""
        known = self._above.get(zone)
        if known is None:
            watts = min(self._shared(), self._tightest(self._plant.own_above[zone]))
            known = self._above[zone] = (self._gpus(watts), watts)
        return known

    def rack(self, bay: int) -> int:
        """How many GPUs the rack of a bay carries."""
        return self._look_at_bay(bay)[1]

    def _look_at_bay(self, number: int) -> tuple[int, int, int, int]:
        bay = self._plant.bays[number]
        changes = self._snapshot.rack_changes(bay.rack_resource)
        known = self._bays.get(number)
        if known is None or known[0] != changes:
            carried = self._gpus(math.floor(self._headroom[bay.rack_resource]))
            most = total = 0
            if carried:
                free = self._snapshot.free_on(bay.first, bay.ends_before)
                most, total = min(carried, max(free)), min(carried, sum(free))
            known = self._bays[number] = (changes, carried, most, total)
        return known

    def _add_up(self) -> tuple[int, int]:
        carried = self._gpus(self._shared())
        if not carried:  # what is full above all zones is full for each of them
            return 0, 0
        single = spread = 0
        for zone in self._plant.zones_of_pool[self._pool]:
            _, most, total = self._add_up_racks(zone)
            if most:
                above, _ = self.above(zone)
                single = max(single, min(above, most))
                spread += min(above, total)
        return single, min(spread, carried)

    def _add_up_racks(self, zone: int) -> tuple[int, int, int]:
        """What the racks of a zone carry: on one node, and in all."""
        changes = self._snapshot.zone_changes(zone)
        known = self._zones.get(zone)
        if known is None or known[0] != changes:
            most = total = 0
            for number in self._plant.zones[zone].bays:
                _, _, biggest, there = self._look_at_bay(number)
                total += there
                if biggest > most:
                    most = biggest
            known = self._zones[zone] = (changes, most, total)
        return known

    def _shared(self) -> float:
        if self._shared_watts is None:
            self._shared_watts = self._tightest(self._plant.common_above[self._pool])
        return self._shared_watts

    def _tightest(self, above: Sequence[tuple[int, float]]) -> float:
        """What is left for nodes under some resources, in whole watts of theirs."""
        headroom, tightest = self._headroom, math.inf
        for resource, share in above:
            left = math.floor(headroom[resource]) / share
            if left < tightest:
                tightest = left
        return tightest

    def _gpus(self, watts: float) -> int:
        """How many GPUs so many whole watts carry."""
        return int(watts / self._watts + _ROUNDING) if self._watts > 0.0 and watts < math.inf else _ANY


Full = dict[int, tuple[int, int]]  # by pool: changes at its site, and how many GPUs it did not carry then


class Rooms:
    """The room of every pool that was asked for; kept with the state."""

    __slots__ = ("_full", "_known", "_plant", "thresholds")

    def __init__(self, plant: Plant, thresholds: Thresholds) -> None:
        self._plant, self.thresholds = plant, thresholds
        self._known: dict[tuple[int, float | None, float], Room] = {}
        self._full: dict[tuple[float | None, float], Full] = {}

    @staticmethod
    def of(snapshot: Snapshot, thresholds: Thresholds) -> Rooms:
        found = snapshot.lasting.get(Rooms)
        if not isinstance(found, Rooms) or found.thresholds is not thresholds:
            found = snapshot.lasting[Rooms] = Rooms(snapshot.plant, thresholds)
        return found

    def room(
        self,
        snapshot: Snapshot,
        headroom: Headroom,
        request: JobRequest,
        pool: int,
        power_fraction: float = 1.0,
    ) -> Room:
        """The room of a pool for GPUs of a job, as things are now."""
        key = (pool, limit_of_each(request), power_fraction)
        stamp = snapshot.stamp(self._plant.site_of_pool[pool], self.thresholds.reading_max_age)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            watts = self._added_watts(request, pool, power_fraction)
            known = self._known[key] = Room(self._plant, pool, watts)
        known.look(snapshot, headroom, stamp)
        return known

    def full(self, request: JobRequest, power_fraction: float) -> Full:
        """Pools that were found full for such GPUs: a large facility is mostly full of them."""
        key = (limit_of_each(request), power_fraction)
        known = self._full.get(key)
        if known is None:
            if len(self._full) >= _MOST_KEPT:
                self._full.clear()
            known = self._full[key] = {}
        return known

    def _added_watts(self, request: JobRequest, pool: int, power_fraction: float) -> float:
        if not request.gpus:
            return 0.0
        node = self._plant.bays[self._plant.bays_of_pool[pool][0]].first
        device = self._plant.spots[node].node.device
        idle_watts = device.idle_watts if device else 0.0
        return max(0.0, peak_watts_on(request, self._plant, node, 1, power_fraction) - idle_watts)


def limit_of_each(request: JobRequest) -> float | None:
    """The most that each of a job's GPUs may draw; None where that is all it can."""
    if not request.gpus:
        return 0.0
    return None if request.peak_watts is None else request.peak_watts / request.gpus
