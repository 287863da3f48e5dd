"""Leeway: how many watts are left in a pool where so many GPUs are free on one node?

What fits for more watts fits for fewer, so one figure for each number of GPUs answers for all jobs, whatever
each of them draws. It is worked out when it is asked for, and anew only for what has changed since.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

from wattline.policy.headroom.power import Headroom
from wattline.state import Plant, Snapshot, Stamp

_ROUNDING = 1e-6
# Watts are whole numbers: a quotient this close to the next one is that.
ROUNDING = 1e-9
_NOTHING = -1.0  # where so many GPUs are free on no node
# So many racks are looked at one by one before all of them are added up.
_FEW_RACKS = 8


_Bay = tuple[int, int, int, int, tuple[int, int]]
_Zone = tuple[int, list[float], int, int, list[tuple[int, int]], float]
_Spreads = tuple[list[float], list[int], list[float]]
_Plain = tuple[Stamp, dict[int, float], float | None, _Spreads | None, dict[int, float]]


class Leeway:
    """What is left of racks and of all that is above them, for the nodes of one pool."""

    __slots__ = (
        "_above",
        "_bays",
        "_biggest",
        "_headroom",
        "_laid_bays",
        "_laid_zones",
        "_plain",
        "_plant",
        "_pool",
        "_shared",
        "_snapshot",
        "_spreads",
        "_watts",
        "_zones",
        "stamp",
    )

    def __init__(self, plant: Plant, pool: int) -> None:
        self._plant, self._pool = plant, pool
        self._biggest = plant.biggest_of_pool[pool]
        # By bay: changes of its rack, whole watts left of it, GPUs free on one node, and on all of them; and
        # those watts and all GPUs, as zones list them.
        self._bays: dict[int, _Bay] = {}
        # By zone: changes of its racks, the most watts left of one by how many GPUs are free there, watts
        # left and GPUs free of all of them, and of each that has some free, and the fewest for a free GPU.
        self._zones: dict[int, _Zone] = {}
        # The same where something is laid over: who tries something and looks back finds both known.
        self._laid_bays: dict[int, _Bay] = {}
        self._laid_zones: dict[int, _Zone] = {}
        # Below, what holds for one stamp.
        self._above: dict[int, float] = {}
        self._shared: float | None = None
        # Of each zone: the most watts left of one rack with a GPU free, GPUs free, and watts left for them.
        self._spreads: _Spreads | None = None
        self._watts: dict[int, float] = {}  # by how many GPUs are free on one node
        self._plain: _Plain | None = None  # the same, as it was when nothing was laid over
        self.stamp: Stamp | None = None

    def look(self, snapshot: Snapshot, headroom: Headroom, stamp: Stamp) -> None:
        """Look at things as they are now; all that did not change since the last look is still known."""
        before, self.stamp = self.stamp, stamp
        self._snapshot, self._headroom = snapshot, headroom
        if stamp == before:
            return
        if before is not None and not before[1]:
            self._plain = (before, self._above, self._shared, self._spreads, self._watts)
        if self._plain is not None and self._plain[0] == stamp:  # back from what was laid over
            _, self._above, self._shared, self._spreads, self._watts = self._plain
        else:
            self._above, self._watts = {}, {}
            self._shared = self._spreads = None
        if before is None or stamp[2:] != before[2:]:  # what is believed has changed everywhere
            for known in (self._bays, self._zones, self._laid_bays, self._laid_zones):
                known.clear()

    def watts(self, gpus: int) -> float:
        """The most that is left for one node with so many GPUs free; below zero where there is none."""
        if gpus > self._biggest:
            return _NOTHING
        known = self._watts.get(gpus)
        if known is None:
            known = self._watts[gpus] = self._add_up(gpus)
        return known

    def is_known(self, gpus: int) -> bool:
        """Whether these watts were added up already as things are now."""
        return gpus in self._watts

    def is_left_soon(self, gpus: int, watts: float) -> bool:
        """Whether one of the first few racks with so many GPUs free on a node has these watts: most of the
        time, where any has.
        """
        plant, headroom, tried = self._plant, self._headroom, 0
        for nodes in self._snapshot.nodes_by_free(self._pool)[gpus:]:
            position = 0
            while position < len(nodes):
                bay = plant.bays[plant.spots[nodes[position]].bay]
                if math.floor(headroom[bay.rack_resource]) >= watts and self.above(bay.zone) >= watts:
                    return True
                tried += 1
                if tried == _FEW_RACKS:
                    return False
                position = bisect_left(nodes, bay.ends_before, position)
        return False

    def watts_in(self, zone: int, gpus: int) -> float:
        """The same of one zone."""
        return _NOTHING if gpus > self._biggest else min(self.above(zone), self._look_at_zone(zone)[1][gpus])

    def rack_watts(self, zone: int, gpus: int) -> float:
        """The most that is left of a rack of a zone, whatever is above it."""
        return _NOTHING if gpus > self._biggest else self._look_at_zone(zone)[1][gpus]

    def most_spread(self, watts: float) -> float:
        """How many GPUs of so many watts each are carried over all nodes: quick, and never too few."""
        if watts <= 0.0 or self._biggest == 0:
            return math.inf
        if self._spreads is None:
            self._spreads = self._list_spreads()
        total, least = 0.0, watts - _ROUNDING
        for left, free, all_watts in zip(*self._spreads, strict=True):
            if left >= least:  # else none of its racks carries one
                total += min(free, all_watts / watts)
        return min(total, self.shared() / watts) + _ROUNDING

    def spreads(self, watts: float, gpus: int) -> bool:
        """Whether so many GPUs of so many watts each are carried over all nodes: exactly."""
        if watts <= 0.0:
            return True
        least, total = watts - _ROUNDING, 0
        if self.shared() / watts + _ROUNDING < gpus:
            return False
        for zone in self._plant.zones_of_pool[self._pool]:
            _, left, _, all_free, racks, _ = self._look_at_zone(zone)
            if not all_free or left[1] < least:
                continue  # none of its racks carries one
            carried = gpus_carried(racks, watts, gpus)
            total += min(carried, int(self.above(zone) / watts + _ROUNDING))
            if total >= gpus:
                return True
        return False

    def _list_spreads(self) -> _Spreads:
        most, free, watts = list[float](), list[int](), list[float]()
        for zone in self._plant.zones_of_pool[self._pool]:
            _, left, all_watts, all_free, _, _ = self._look_at_zone(zone)
            if all_free:
                most.append(left[1])
                free.append(all_free)
                watts.append(min(float(all_watts), self.above(zone)))
        return most, free, watts

    def shared(self) -> float:
        """What is left of what is above all zones."""
        if self._shared is None:
            self._shared = tightest_watts(self._headroom, self._plant.common_above[self._pool])
        return self._shared

    def above(self, zone: int) -> float:
        """What is left of the tightest thing above the racks of a zone."""
        known = self._above.get(zone)
        if known is None:  # as `tightest_watts`, for what is asked of each zone after each change
            known, headroom, floor = self.shared(), self._headroom, math.floor
            for resource, share in self._plant.own_above[zone]:
                left = floor(headroom[resource]) / share
                if left < known:
                    known = left
            self._above[zone] = known
        return known

    def bay(self, number: int) -> _Bay:
        """Changes of its rack, whole watts left of it, GPUs free on one node, and on all of them; and the
        watts with all of those.
        """
        bay = self._plant.bays[number]
        changes = self._snapshot.rack_changes(bay.rack_resource)
        seen = self._bays if changes >= 0 else self._laid_bays
        known = seen.get(number)
        if known is None or known[0] != changes:
            left = math.floor(self._headroom[bay.rack_resource])
            free = self._snapshot.free_on(bay.first, bay.ends_before)
            all_free = sum(free)
            known = seen[number] = (changes, left, max(free), all_free, (left, all_free))
        return known

    def carried(self, zone: int, watts: float, most: float = math.inf) -> int:
        """How many free GPUs of so many watts each the racks of a zone carry in all; `most` will do."""
        known = self._look_at_zone(zone)
        return known[3] if watts <= known[5] else gpus_carried(known[4], watts, most)

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

    def _look_at_zone(self, zone: int) -> _Zone:
        changes = self._snapshot.zone_changes(zone)
        zones = self._zones if changes >= 0 else self._laid_zones
        known = zones.get(zone)
        if known is None or known[0] != changes:
            left = [_NOTHING] * (self._biggest + 1)
            all_watts = all_free = 0
            racks: list[tuple[int, int]] = []
            # Where something is laid over a zone, `bay` knows over which of its racks.
            seen = self._bays if changes >= 0 else {}
            rack_changes = self._snapshot.plain_rack_changes
            for number, rack in _racks(self._plant)[zone]:
                there = seen.get(number)
                if there is None or there[0] != rack_changes[rack]:
                    there = self.bay(number)
                _, watts, most, free, rack_left = there
                if free:
                    all_watts += watts
                    all_free += free
                    racks.append(rack_left)
                if watts > left[most]:
                    left[most] = watts
            for gpus in range(self._biggest - 1, -1, -1):  # where more are free there are as many
                if left[gpus + 1] > left[gpus]:
                    left[gpus] = left[gpus + 1]
            racks.sort(reverse=True)
            least = min([watts / free for watts, free in racks], default=math.inf)
            known = zones[zone] = (changes, left, all_watts, all_free, racks, least)
        return known


def gpus_carried(racks: Sequence[tuple[int, int]], each_watts: float, most: float = math.inf) -> int:
    """How many GPUs of some watts each some racks carry, the one with most left first; `most` will do."""
    total, least = 0, each_watts - _ROUNDING
    for watts, free in racks:
        if watts < least or total >= most:
            break
        total += min(int(watts / each_watts + ROUNDING), free) if each_watts > 0.0 else free
    return total


@lru_cache(maxsize=8)
def _racks(plant: Plant) -> list[list[tuple[int, int]]]:
    """By zone: its bays, each with the resource of its rack."""
    return [[(number, plant.bays[number].rack_resource) for number in zone.bays] for zone in plant.zones]


def tightest_watts(headroom: Headroom, above: Sequence[tuple[int, float]]) -> float:
    """What is left for nodes under some resources, in whole watts of theirs."""
    tightest, floor = math.inf, math.floor
    for resource, share in above:
        left = floor(headroom[resource]) / share
        if left < tightest:
            tightest = left
    return tightest
