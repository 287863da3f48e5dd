"""Freeing: in which pools may a job fit once some of those who run have ended?

What racks and all above them carry is known as things are; each end adds what it gives back, so that one more
costs what it frees. After most ends nobody looks. Heat and budgets are
left to whoever tries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from wattline.policy.headroom.power import headroom_of
from wattline.policy.headroom.rooms import ANY, Room, Rooms, gpus_of
from wattline.policy.permitting.pools import pools_for
from wattline.spec.policy import Policy
from wattline.state import Claim, JobRequest, Plant, Snapshot


class End(NamedTuple):
    """What one who ends gives back at a site."""

    site: str
    claim: Claim
    gpus: int
    watts: int  # of the one thing above its GPUs that it took most of
    parts: tuple[tuple[int, int, int, int], ...]  # of each node its pool, zone and bay, and GPUs

    @staticmethod
    def of(plant: Plant, site: str, claim: Claim) -> End:
        watts = max([amount for _, amount in claim.amounts], default=0)
        spots = [(plant.spots[node], gpus) for node, gpus in claim.nodes]
        parts = tuple([(spot.pool, plant.bays[spot.bay].zone, spot.bay, gpus) for spot, gpus in spots])
        return End(site, claim, sum([gpus for _, gpus in claim.nodes]), watts, parts)


Upcoming = tuple[float, str, End]  # when it will have ended at the latest, who, and what it gives back


class Freed:
    """What ends give back, one after the other; the same for all who ask where they fit then."""

    __slots__ = (
        "_gains",
        "_pools",
        "added",
        "ended",
        "gpus_in",
        "gpus_of",
        "headroom",
        "policy",
        "rooms",
        "snapshot",
        "touched",
        "watts",
    )

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self.snapshot, self.policy = snapshot, policy
        self.headroom = headroom_of(snapshot, policy.thresholds)
        self.rooms = Rooms.of(snapshot, policy.thresholds)
        self.ended: dict[str, list[Upcoming]] = {site: [] for site in snapshot.plant.site_names}
        self.watts: dict[int, int] = {}  # by resource
        pools = snapshot.plant.pools
        self.gpus_in: dict[int, dict[int, int]] = {}  # by zone, and by bay
        self.gpus_of: list[int] = [0] * len(pools)  # by pool
        self.touched: list[list[int]] = [[] for _ in pools]  # by pool: bays, one for each node that was left
        self.added = dict.fromkeys(self.ended, 0)  # by site: so many of these are in the sums above
        self._gains: dict[str, dict[float, _Gain]] = {site: {} for site in snapshot.plant.site_names}
        # By pool and watts of each GPU: who asks for as many watts asks the same of a pool.
        self._pools: dict[tuple[int, float], _Pool] = {}

    def add(self, upcoming: Upcoming) -> bool:
        """One more has ended: whether enough may have been given back for somebody who asks at its site."""
        site, _, gpus, watts, _ = upcoming[2]
        self.ended[site].append(upcoming)
        is_enough = False
        # One end makes room for no more GPUs than it gave back, or than its watts carry and one begun.
        for gain in self._gains[site].values():
            more = watts / gain.least_watts + 1.0
            gain.gained += max(gpus, more)
            if gain.gained >= gain.lacking:
                is_enough = True
        return is_enough

    def add_up(self, site: str) -> None:
        """Have all who ended at a site in the sums: after most ends nobody looks."""
        ended, watts, gpus_of = self.ended[site], self.watts, self.gpus_of
        for _, _, end in ended[self.added[site] :]:
            for resource, amount in end.claim.amounts:
                watts[resource] = watts.get(resource, 0) + amount
            for pool, zone, bay, gpus in end.parts:
                bays = self.gpus_in.get(zone)
                if bays is None:
                    bays = self.gpus_in[zone] = {}
                bays[bay] = bays.get(bay, 0) + gpus
                gpus_of[pool] += gpus
                self.touched[pool].append(bay)
        self.added[site] = len(ended)

    def gain(self, site: str, least_watts: float) -> _Gain:
        gains = self._gains[site]
        known = gains.get(least_watts)
        if known is None:
            known = gains[least_watts] = _Gain(least_watts)
        return known

    def pool(self, request: JobRequest, number: int) -> _Pool:
        each_watts = self.rooms.added_watts(request.each_watts)[number]
        known = self._pools.get((number, each_watts))
        if known is None:
            known = self._pools[number, each_watts] = _Pool(self, request, number, each_watts)
        if request.gpus > known.most_gpus:
            known.most_gpus = request.gpus
        return known


class _Gain:
    """For who asks for some watts at a site: how many GPUs more are carried than before anybody ended, at
    most, and how many of those must be before anybody need look again.
    """

    __slots__ = ("at_sites", "gained", "lacking", "least_watts")

    def __init__(self, least_watts: float) -> None:
        # Who takes no watts is held up by GPUs alone, and looks after each end.
        self.least_watts = least_watts if least_watts > 0.0 else math.inf
        self.gained = 0.0 if least_watts > 0.0 else math.inf
        self.at_sites: list[AtSite] = []
        self.lacking = 0.0

    def settle(self) -> None:
        self.lacking = min([at_site.lacking for at_site in self.at_sites])


class Fitting:
    """Where one request may fit, end by end."""

    __slots__ = ("sites",)

    def __init__(self, freed: Freed, request: JobRequest) -> None:
        plant, pools = freed.snapshot.plant, dict[str, list[_Pool]]()
        for _, pool in pools_for(plant, freed.policy, request):
            pools.setdefault(plant.pools[pool][0], []).append(freed.pool(request, pool))
        self.sites = {site: AtSite(freed, site, request, there) for site, there in pools.items()}

    def close(self) -> None:
        """Nobody asks any more."""
        for at_site in self.sites.values():
            at_site.lack(math.inf)


class AtSite:
    """The pools of one site: they are looked at again once enough was given back for what they lack."""

    __slots__ = ("_freed", "_gain", "_name", "_pools", "_request", "lacking")

    def __init__(self, freed: Freed, name: str, request: JobRequest, pools: list[_Pool]) -> None:
        self._freed, self._name, self._request, self._pools = freed, name, request, pools
        self._gain = freed.gain(name, min([pool.each_watts for pool in pools]))
        self._gain.at_sites.append(self)
        self.lacking = 0.0

    def has_enough(self) -> bool:
        """Whether enough may have been given back: never too strict."""
        return self._gain.gained >= self.lacking

    def lack(self, gpus: float) -> None:
        self.lacking = gpus
        self._gain.settle()

    def pools(self) -> list[int]:
        """Pools that may carry the whole request by now."""
        self._freed.add_up(self._name)
        gained, request = self._gain.gained, self._request
        gpus, most, found = request.gpus, -math.inf, list[int]()
        for pool in self._pools:
            reach = pool.reach(gpus, gained)
            most = max(most, reach)
            if reach >= gpus and pool.has_node(request):
                found.append(pool.number)
        if gained < math.inf:
            self.lack(gained + gpus - most)
        return found


class _Pool:
    """GPUs of one pool that are carried, zone by zone; worked out once there may be enough of them."""

    __slots__ = (
        "_carried",
        "_counted",
        "_enough",
        "_freed",
        "_limited",
        "_noted",
        "_plant",
        "_racks",
        "_request",
        "_seen",
        "_site",
        "_spread",
        "_total",
        "each_watts",
        "most_gpus",
        "number",
    )

    def __init__(self, freed: Freed, request: JobRequest, pool: int, each_watts: float) -> None:
        self._freed, self._plant = freed, freed.snapshot.plant
        self._request, self.number = request, pool
        self._site = self._plant.pools[pool][0]
        self.each_watts = each_watts
        self.most_gpus = 0  # that are asked for: more need not be counted in a zone
        self._noted = -1  # of those who ended at its site; not one of them before all was counted
        self._seen = 0  # of the bays where somebody ended
        self._racks: dict[int, int] = {}  # by bay where somebody ended: what its rack carries now
        # By zone of which anything is carried above its racks: what those carry, and what it is enough for.
        self._counted: dict[int, int] = {}
        self._enough: dict[int, int] = {}
        self._carried: dict[int, int] = {}  # by zone: what of that is carried above them
        # Zones above which too little is left: of what, and what had been given back of that by then.
        self._limited: dict[int, tuple[int, int]] = {}
        self._spread: float | None = None  # the most that was carried before anybody ended
        self._total = 0  # of all that is carried

    def reach(self, gpus: int, gained: float) -> float:
        """How many GPUs are free and carried at most, of so many that are asked for; never too few.

        `gained` is the most that all who ended made room for.
        """
        freed, number = self._freed, self.number
        reach = freed.snapshot.free_in(number) + freed.gpus_of[number]
        if reach < gpus or not gpus:
            return reach
        reach = min(reach, self._carried_by(self._plant.common_above[number])[0])
        if reach < gpus:
            return reach
        if self._noted < 0:
            if self._spread is None:
                self._spread = self._room().most_spread()
            if self._spread + gained < gpus:
                return self._spread + gained
        if self._noted != freed.added[self._site]:
            self._note()
        return min(reach, self._total)

    def has_node(self, request: JobRequest) -> bool:
        """Whether so many GPUs are free on one node, where they may not be spread."""
        snapshot, gpus = self._freed.snapshot, request.gpus
        if request.may_spread or snapshot.most_free_in(self.number) >= gpus:
            return True
        more: dict[int, int] = {}  # by node
        for _, _, end in self._freed.ended[self._site]:
            for node, freed in end.claim.nodes:
                more[node] = more.get(node, 0) + freed
        return any(snapshot.gpus_free(node) + freed >= gpus for node, freed in more.items())

    def _room(self) -> Room:
        """As things are before anybody ends, whatever was tried meanwhile."""
        freed = self._freed
        return freed.rooms.room(freed.snapshot, freed.headroom, self._request.each_watts, self.number)

    def _note(self) -> None:
        """Count anew where somebody ended since the last look, and all at the first."""
        touched, room = self._freed.touched[self.number], self._room()
        before, self._noted = self._noted, self._freed.added[self._site]
        if before < 0:
            self._seen = len(touched)
            for zone in self._plant.zones_of_pool[self.number]:
                self._settle(zone, room)
            return
        bays, given_back = self._plant.bays, self._freed.watts
        changed = {
            zone: None
            for zone, (tightest, then) in self._limited.items()
            if given_back.get(tightest, 0) != then
        }
        for number in dict.fromkeys(touched[self._seen :]):
            zone = bays[number].zone
            if zone in self._counted:
                self._count(number, zone, room)
            changed[zone] = None
        self._seen = len(touched)
        for zone in changed:
            self._settle(zone, room)

    def _settle(self, zone: int, room: Room) -> None:
        """What a zone carries now: of its racks no more are looked at than what is above them carries."""
        carried, tightest = self._carried_by(self._plant.own_above[zone])
        if carried > self._enough.get(zone, 0):
            self._count_zone(zone, carried, room)
        counted = self._counted.get(zone)
        if counted is None or carried < counted:
            self._limited[zone] = (tightest, self._freed.watts.get(tightest, 0))
        else:
            carried = counted
            self._limited.pop(zone, None)
        self._total += carried - self._carried.get(zone, 0)
        self._carried[zone] = carried

    def _count_zone(self, zone: int, carried: int, room: Room) -> None:
        """Count its racks until so many are found; all that are asked for, where it was not enough before."""
        most = self.most_gpus
        enough = most if zone in self._enough else min(carried, most)
        counted = self._counted[zone] = room.carried(zone, enough)
        self._enough[zone] = enough if enough < most and counted >= enough else ANY
        for number in self._freed.gpus_in.get(zone, ()):
            self._racks.pop(number, None)
            self._count(number, zone, room)

    def _count(self, number: int, zone: int, room: Room) -> None:
        """A rack carries more than it did."""
        freed, each_watts = self._freed, self.each_watts
        left, free = room.rack_left(number)
        before = self._racks.get(number)
        if before is None:
            before = min(gpus_of(left, each_watts), free)
        able = gpus_of(left + freed.watts.get(self._plant.bays[number].rack_resource, 0), each_watts)
        now = self._racks[number] = min(able, free + freed.gpus_in[zone][number])
        self._counted[zone] += now - before

    def _carried_by(self, above: Sequence[tuple[int, float]]) -> tuple[int, int]:
        """How many GPUs some resources carry, and which of them carries the fewest."""
        headroom, given_back, left, tightest = self._freed.headroom, self._freed.watts, math.inf, -1
        for resource, share in above:
            watts = (headroom[resource] + given_back.get(resource, 0)) // 1 / share
            if watts < left:
                left, tightest = watts, resource
        return gpus_of(left, self.each_watts), tightest
