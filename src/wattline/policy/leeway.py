"""Leeway: how many watts are left in a pool where so many GPUs are free on one node?

What fits for more watts fits for fewer, so one figure for each number of GPUs answers for all jobs, whatever
each of them draws. It is worked out when it is asked for, and anew only for what has changed since.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wattline.policy.power import Headroom
from wattline.state import Plant, Snapshot, Stamp

_ROUNDING = 1e-6
_NOTHING = -1.0  # where so many GPUs are free on no node


class Leeway:
    """What is left of racks and of all that is above them, for the nodes of one pool."""

    __slots__ = (
        "_above",
        "_bays",
        "_biggest",
        "_headroom",
        "_plant",
        "_pool",
        "_shared",
        "_snapshot",
        "_watts",
        "_zones",
        "stamp",
    )

    def __init__(self, plant: Plant, pool: int) -> None:
        self._plant, self._pool = plant, pool
        self._biggest = plant.biggest_of_pool[pool]
        # By bay: changes of its rack, whole watts left of it, GPUs free on one node, and on all.
        self._bays: dict[int, tuple[int, int, int, int]] = {}
        # By zone: changes of its racks, the most watts left of one by how many GPUs are free there, and watts
        # left and GPUs free of all of them.
        self._zones: dict[int, tuple[int, list[float], int, int]] = {}
        # Below, what holds for one stamp.
        self._above: dict[int, float] = {}
        self._shared: float | None = None
        self._watts: dict[int, float] = {}  # by how many GPUs are free on one node
        self.stamp: Stamp | None = None

    def look(self, snapshot: Snapshot, headroom: Headroom, stamp: Stamp) -> None:
        """Look at things as they are now; all that did not change since the last look is still known."""
        before, self.stamp = self.stamp, stamp
        self._snapshot, self._headroom = snapshot, headroom
        if stamp == before:
            return
        self._above.clear()
        self._shared = None
        self._watts.clear()
        if before is None or stamp[2:] != before[2:]:  # what is believed has changed everywhere
            self._bays.clear()
            self._zones.clear()

    def watts(self, gpus: int) -> float:
        """The most that is left for one node with so many GPUs free; below zero where there is none."""
        if gpus > self._biggest:
            return _NOTHING
        known = self._watts.get(gpus)
        if known is None:
            known = self._watts[gpus] = self._add_up(gpus)
        return known

    def is_known(self) -> bool:
        """Whether the watts were added up already as things are now."""
        return bool(self._watts)

    def watts_in(self, zone: int, gpus: int) -> float:
        """The same of one zone."""
        return _NOTHING if gpus > self._biggest else min(self.above(zone), self._look_at_zone(zone)[1][gpus])

    def most_spread(self, watts: float) -> float:
        """How many GPUs of so many watts each are carried over all nodes: quick, and never too few."""
        if watts <= 0.0 or self._biggest == 0:
            return math.inf
        total = 0.0
        for zone in self._plant.zones_of_pool[self._pool]:
            _, left, all_watts, all_free = self._look_at_zone(zone)
            if left[1] >= watts - _ROUNDING:  # else none of its racks carries one
                total += min(all_free, min(all_watts, self.above(zone)) / watts)
        return min(total, self.shared() / watts) + _ROUNDING

    def shared(self) -> float:
        """What is left of what is above all zones."""
        if self._shared is None:
            self._shared = self._tightest(self._plant.common_above[self._pool])
        return self._shared

    def above(self, zone: int) -> float:
        """What is left of the tightest thing above the racks of a zone."""
        known = self._above.get(zone)
        if known is None:
            known = self._above[zone] = min(self.shared(), self._tightest(self._plant.own_above[zone]))
        return known

    def bay(self, number: int) -> tuple[int, int, int, int]:
        """Changes of its rack, whole watts left of it, GPUs free on one node, and on all of them."""
        bay = self._plant.bays[number]
        changes = self._snapshot.rack_changes(bay.rack_resource)
        known = self._bays.get(number)
        if known is None or known[0] != changes:
            left = math.floor(self._headroom[bay.rack_resource])
            free = self._snapshot.free_on(bay.first, bay.ends_before)
            known = self._bays[number] = (changes, left, max(free), sum(free))
        return known

    def zone_changes(self, zone: int) -> int:
        """Counts what changed in the racks of a zone, overlay included."""
        return self._snapshot.zone_changes(zone)

    def _add_up(self, gpus: int) -> float:
        shared, most = self.shared(), _NOTHING
        if shared <= 0.0:  # what is full above all zones is full for each of them
            return 0.0
        for zone in self._plant.zones_of_pool[self._pool]:
            left = self._look_at_zone(zone)[1][gpus]
            if left > most:
                above = self.above(zone)
                most = max(most, min(left, above))
                if most >= shared:
                    break
        return most

    def _look_at_zone(self, zone: int) -> tuple[int, list[float], int, int]:
        changes = self.zone_changes(zone)
        known = self._zones.get(zone)
        if known is None or known[0] != changes:
            left = [_NOTHING] * (self._biggest + 1)
            all_watts = all_free = 0
            for number in self._plant.zones[zone].bays:
                _, watts, most, free = self.bay(number)
                if free:
                    all_watts += watts
                    all_free += free
                if watts > left[most]:
                    left[most] = watts
            for gpus in range(self._biggest - 1, -1, -1):  # where more are free there are as many
                if left[gpus + 1] > left[gpus]:
                    left[gpus] = left[gpus + 1]
            known = self._zones[zone] = (changes, left, all_watts, all_free)
        return known

    def _tightest(self, above: Sequence[tuple[int, float]]) -> float:
        """What is left for nodes under some resources, in whole watts of theirs."""
        headroom, tightest = self._headroom, math.inf
        for resource, share in above:
            left = math.floor(headroom[resource]) / share
            if left < tightest:
                tightest = left
        return tightest
