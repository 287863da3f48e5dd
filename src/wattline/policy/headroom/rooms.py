"""Rooms: how many GPUs of some watts do the racks, and all that is above them, still carry in each pool?

Most of a well-filled facility is full, and most searches would find that out again. Here it is worked out
when it is asked for, and anew only for what has changed since.
"""

from __future__ import annotations

import math
from functools import lru_cache

from wattline.policy.headroom.leeway import ROUNDING, Leeway
from wattline.policy.headroom.power import Headroom
from wattline.spec.policy import Thresholds
from wattline.state import Plant, Snapshot, Stamp, gpu_peak_watts

_MOST_KEPT = 10_000
ANY = 1 << 40
# So many distinct watts are worked out one by one; of more, the step below is asked first: steps of a tenth.
_FEW = 12
_FEW_ZONES = 8
_STEP = math.log(1.1)


class Room:
    """What a pool still carries of GPUs that draw so many watts each, heat and CPUs aside."""

    __slots__ = (
        "_coarse",
        "_is_large",
        "_leeway",
        "_plant",
        "_pool",
        "_spread",
        "_stamp",
        "_watts",
        "_zones",
    )

    def __init__(self, plant: Plant, pool: int, watts: float, leeway: Leeway, coarse: Room | None) -> None:
        self._plant, self._pool, self._leeway = plant, pool, leeway
        self._watts = watts  # that one GPU adds to what idles
        self._is_large = len(plant.zones_of_pool[pool]) > _FEW_ZONES
        self._coarse = coarse  # that of fewer watts: what it does not carry, this one does not
        self._zones: dict[int, tuple[int, int]] = {}  # by zone: changes, and GPUs that its racks carry
        self._spread: int | None = None  # of one stamp
        self._stamp: Stamp | None = None

    @property
    def each_watts(self) -> float:
        """That one GPU adds to what idles."""
        return self._watts

    def least_watts(self, gpus: int) -> float:
        """How many whole watts carry so many."""
        return self._watts * (gpus - ROUNDING)

    def fits(self, gpus: int) -> bool:
        """Whether some node, its rack and all that is above it carry so many."""
        leeway = self._leeway
        if not leeway.is_known(gpus) and leeway.is_left_soon(gpus, self.least_watts(gpus)):
            return True  # no zone need be added up
        left = leeway.watts(gpus)
        return left >= 0.0 and self._gpus(left) >= gpus

    def may_spread(self, gpus: int) -> bool:
        """Whether so many may be carried over several nodes: quick, and never too strict."""
        if self._gpus(self._leeway.shared()) < gpus or self._leeway.most_spread(self._watts) < gpus:
            return False
        return (self._coarse or self).reaches(gpus)

    def most_spread(self) -> float:
        """How many are carried over several nodes: quick, and never too few."""
        return self._leeway.most_spread(self._watts)

    def spreads(self, gpus: int) -> bool:
        """Whether so many are carried over several nodes."""
        return self.may_spread(gpus) and self.reaches(gpus)

    def spread(self) -> int:
        """The most GPUs over several nodes."""
        self._keep_up()
        if self._spread is None:
            self._spread = self._add_up()
        return self._spread

    def reaches(self, gpus: int) -> bool:
        """Whether `spread` is as much: zones are added up until they are enough."""
        self._keep_up()
        if self._spread is not None:
            return self._spread >= gpus
        found = self._add_up(gpus)
        if found < gpus:
            self._spread = found
        return found >= gpus

    def _keep_up(self) -> None:
        stamp = self._leeway.stamp
        if self._stamp is None or self._stamp != stamp:
            if self._stamp is None or stamp is None or stamp[2:] != self._stamp[2:]:
                self._zones.clear()
            self._stamp, self._spread = stamp, None

    def most_on_one(self) -> int:
        """How many one node carries at most: quick, and never too few."""
        leeway, most = self._leeway, 0.0
        enough = self._watts * self._plant.biggest_of_pool[self._pool]
        above = [(leeway.above(zone), zone) for zone in self._plant.zones_of_pool[self._pool]]
        for left, zone in sorted(above, reverse=True):
            if left <= most or most > enough:
                break  # no other zone has more, or no node could use it
            most = max(most, min(left, leeway.rack_watts(zone, 1)))
        return self._gpus(most)

    def is_full(self, gpus: int) -> bool:
        """Whether it is known that so many fit on no node; a small pool is searched sooner than added up."""
        return (self._is_large or self._leeway.is_known(gpus)) and not self.fits(gpus)

    def fits_in(self, zone: int, gpus: int) -> bool:
        """Whether some node of a zone may carry so many."""
        leeway = self._leeway
        left = leeway.watts_in(zone, gpus) if self._is_large else leeway.above(zone)
        return left >= 0.0 and self._gpus(left) >= gpus

    def rack_watts(self, zone: int, gpus: int) -> float:
        """The most that is left of a rack of a zone, with so many GPUs free on a node; below zero: none."""
        return self._leeway.rack_watts(zone, gpus)

    def above_watts(self, zone: int) -> float:
        """What is left of the tightest thing above the racks of a zone."""
        return self._leeway.above(zone)

    def above(self, zone: int) -> int:
        """How many GPUs all that is above the racks of a zone carries."""
        return self._gpus(self._leeway.above(zone))

    def rack(self, bay: int) -> int:
        """How many GPUs the rack of a bay carries."""
        each_watts = self._watts
        return int(self._leeway.bay(bay)[1] / each_watts + ROUNDING) if each_watts > 0.0 else ANY

    def rack_left(self, bay: int) -> tuple[int, int]:
        """Whole watts that are left of the rack of a bay, and GPUs that are free there."""
        return self._leeway.bay(bay)[4]

    def carried(self, zone: int, most: int) -> int:
        """How many free GPUs the racks of a zone carry in all; of many, `most` will do."""
        return self._leeway.carried(zone, self._watts, most)

    def carries_of(self, watts: float, gpus: int, may_spread: bool) -> bool:
        """Whether there is room for GPUs of other watts: on one node, or over several where that may be."""
        leeway = self._leeway
        left = leeway.watts(gpus)
        if left >= 0.0 and left >= watts * (gpus - ROUNDING):
            return True
        if not may_spread or (watts > 0.0 and leeway.shared() < watts * (gpus - ROUNDING)):
            return False
        return leeway.most_spread(watts) >= gpus and leeway.spreads(watts, gpus)

    def _add_up(self, enough: float = math.inf) -> int:
        """All of them; or no fewer than are `enough`, where there are as many."""
        carried = self._gpus(self._leeway.shared())
        if not carried:  # what is full above all zones is full for each of them
            return 0
        spread = 0
        for zone in self._plant.zones_of_pool[self._pool]:
            total = self._add_up_racks(zone)
            if total:
                spread += min(self._gpus(self._leeway.above(zone)), total)
                if spread >= enough:
                    break
        return min(spread, carried)

    def _add_up_racks(self, zone: int) -> int:
        """What the racks of a zone carry in all."""
        leeway = self._leeway
        changes = leeway.zone_changes(zone)
        known = self._zones.get(zone)
        if known is None or known[0] != changes:
            total = leeway.carried(zone, self._watts)
            known = self._zones[zone] = (changes, total)
        return known[1]

    def _gpus(self, watts: float) -> int:
        """How many GPUs so many whole watts carry."""
        return gpus_of(watts, self._watts)


def gpus_of(watts: float, each_watts: float) -> int:
    """How many GPUs that add so many watts each some whole watts carry."""
    return int(watts / each_watts + ROUNDING) if each_watts > 0.0 and watts < math.inf else ANY


class AddedWatts(dict[int, float]):
    """What one GPU of so many watts at most adds to what idles, by pool; worked out when it is asked for."""

    __slots__ = ("_each_watts", "_plant", "_power_fraction")

    def __init__(self, plant: Plant, each_watts: float, power_fraction: float) -> None:
        self._plant, self._each_watts, self._power_fraction = plant, each_watts, power_fraction

    def __missing__(self, pool: int) -> float:
        plant, added = self._plant, 0.0
        device = plant.spots[plant.bays[plant.bays_of_pool[pool][0]].first].node.device
        if device is not None:
            peak_watts = gpu_peak_watts(device, self._each_watts, self._power_fraction)
            added = max(0.0, peak_watts - device.idle_watts)
        self[pool] = added
        return added


Full = dict[int, tuple[int, int]]  # by pool: changes at its site, and how many GPUs it did not carry then


class Rooms:
    """The room of every pool that was asked for; kept with the state."""

    __slots__ = ("_added", "_full", "_known", "_leeways", "_plant", "thresholds")

    def __init__(self, plant: Plant, thresholds: Thresholds) -> None:
        self._plant, self.thresholds = plant, thresholds
        self._leeways: list[Leeway] = [Leeway(plant, pool) for pool in range(len(plant.pools))]
        self._added: dict[tuple[float, float], AddedWatts] = {}  # by limit and fraction of it
        self._known: list[dict[float, Room]] = [{} for _ in plant.pools]
        self._full: dict[tuple[float, float], Full] = {}

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
        each_watts: float,
        pool: int,
        power_fraction: float = 1.0,
    ) -> Room:
        """The room of a pool for GPUs that may draw so many watts each, as things are now."""
        stamp = snapshot.stamp(self._plant.site_of_pool[pool], self.thresholds.reading_max_age)
        self._leeways[pool].look(snapshot, headroom, stamp)
        watts = self.added_watts(each_watts, power_fraction)[pool]
        known = self._known[pool].get(watts)
        return self._add(pool, watts) if known is None else known

    def added_watts(self, each_watts: float, power_fraction: float = 1.0) -> AddedWatts:
        """What one GPU that may draw so many watts adds to what idles, by pool."""
        key = (each_watts, power_fraction)
        known = self._added.get(key)
        if known is None:
            if len(self._added) >= _MOST_KEPT // len(self._known) + _FEW:
                self._added.clear()
            known = self._added[key] = AddedWatts(self._plant, each_watts, power_fraction)
        return known

    def full(self, each_watts: float, power_fraction: float) -> Full:
        """Pools that were found full for such GPUs: a large facility is mostly full of them."""
        key = (each_watts, power_fraction)
        known = self._full.get(key)
        if known is None:
            if len(self._full) >= _MOST_KEPT:
                self._full.clear()
            known = self._full[key] = {}
        return known

    def _add(self, pool: int, watts: float) -> Room:
        rooms = self._known[pool]
        if len(rooms) >= _MOST_KEPT // len(self._known) + _FEW:
            rooms.clear()
        coarse = None
        if len(rooms) >= _FEW and watts > 0.0:
            below = math.exp(_STEP * math.floor(math.log(watts) / _STEP))
            if below < watts:
                coarse = rooms.get(below) or self._add_exactly(pool, below, None)
        return self._add_exactly(pool, watts, coarse)

    def _add_exactly(self, pool: int, watts: float, coarse: Room | None) -> Room:
        room = self._known[pool][watts] = Room(self._plant, pool, watts, self._leeways[pool], coarse)
        return room


@lru_cache(maxsize=8)
def zone_spans(plant: Plant) -> list[int]:
    """By bay: the number before which the bays of its pool that follow it are all of its zone."""
    spans = [bay.ends_before for bay in plant.bays]
    for bays in plant.bays_of_pool:
        for number, following in zip(reversed(bays[:-1]), reversed(bays[1:]), strict=True):
            if plant.bays[number].zone == plant.bays[following].zone:
                spans[number] = spans[following]
    return spans
