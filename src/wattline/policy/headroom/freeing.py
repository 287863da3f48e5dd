"""Freeing: in which pools may a job fit once some of those who run have ended?

What racks and all above them carry is known as things are; each end adds what it gives back, so that one more
costs what it frees. Heat and budgets are left to whoever tries.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from wattline.policy.headroom.power import headroom_of
from wattline.policy.headroom.rooms import Room, Rooms, gpus_of
from wattline.policy.permitting.pools import pools_for
from wattline.spec.policy import Policy
from wattline.state import Claim, JobRequest, Snapshot


class End(NamedTuple):
    """What one who ends gives back at a site."""

    site: str
    claim: Claim
    gpus: int
    watts: int  # of the one thing above its GPUs that it took most of

    @staticmethod
    def of(site: str, claim: Claim) -> End:
        watts = max([amount for _, amount in claim.amounts], default=0)
        return End(site, claim, sum([gpus for _, gpus in claim.nodes]), watts)


class Freed:
    """What ends give back, one after the other; the same for all who ask where they fit then."""

    __slots__ = (
        "_added",
        "_racks",
        "claims",
        "gpus_in",
        "gpus_of",
        "headroom",
        "policy",
        "pools",
        "rooms",
        "snapshot",
        "watts",
    )

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self.snapshot, self.policy = snapshot, policy
        self.headroom = headroom_of(snapshot, policy.thresholds)
        self.rooms = Rooms.of(snapshot, policy.thresholds)
        self.watts: defaultdict[int, int] = defaultdict(int)  # by resource
        self.gpus_in: list[dict[int, int]] = [{} for _ in snapshot.plant.pools]  # by pool, and by bay
        self.gpus_of: dict[int, int] = {}  # by pool
        self.claims: dict[str, list[Claim]] = {}  # by site
        self._added: dict[str, int] = {}  # by site: so many of these are in the sums above
        self._racks: dict[int, tuple[int, int, int, int]] = {}  # by bay
        # By pool and watts of each GPU: who asks for as many watts asks the same of a pool.
        self.pools: dict[tuple[int, float], _Pool] = {}

    def add(self, end: End) -> None:
        """One more has ended."""
        claims = self.claims.get(end.site)
        if claims is None:
            claims = self.claims[end.site] = []
        claims.append(end.claim)

    def add_up(self, site: str) -> None:
        """Have all who ended at a site in the sums: after most ends nobody looks."""
        claims, spots, watts = self.claims.get(site, []), self.snapshot.plant.spots, self.watts
        for claim in claims[self._added.get(site, 0) :]:
            for resource, amount in claim.amounts:
                watts[resource] += amount
            for node, gpus in claim.nodes:
                spot = spots[node]
                bay, pool = spot.bay, spot.pool
                bays = self.gpus_in[pool]
                bays[bay] = bays.get(bay, 0) + gpus
                self.gpus_of[pool] = self.gpus_of.get(pool, 0) + gpus
        self._added[site] = len(claims)

    def rack(self, bay: int) -> tuple[int, int, int, int]:
        """The zone of a bay, its rack, and whole watts and GPUs that were left there before anybody ended."""
        known = self._racks.get(bay)
        if known is None:
            there = self.snapshot.plant.bays[bay]
            left = math.floor(self.headroom[there.rack_resource])
            free = sum(self.snapshot.free_on(there.first, there.ends_before))
            known = self._racks[bay] = (there.zone, there.rack_resource, left, free)
        return known

    def pool(self, request: JobRequest, number: int) -> _Pool:
        each_watts = self.rooms.added_watts(request, number)
        known = self.pools.get((number, each_watts))
        if known is None:
            known = self.pools[number, each_watts] = _Pool(self, request, number, each_watts)
        known.most_gpus = max(known.most_gpus, request.gpus)
        return known


class Fitting:
    """Where one request may fit, end by end."""

    __slots__ = ("sites",)

    def __init__(self, freed: Freed, request: JobRequest) -> None:
        self.sites: dict[str, AtSite] = {}
        plant = freed.snapshot.plant
        for _, pool in pools_for(plant, freed.policy, request):
            name = plant.pools[pool][0]
            site = self.sites.get(name)
            if site is None:
                site = self.sites[name] = AtSite(freed, name, request)
            site.add(freed.pool(request, pool))


class AtSite:
    """The pools of one site: they are looked at again once enough was given back for what they lack."""

    __slots__ = ("_freed", "_gained", "_lacking", "_least_watts", "_name", "_pools", "_request")

    def __init__(self, freed: Freed, name: str, request: JobRequest) -> None:
        self._freed, self._name, self._request = freed, name, request
        self._pools: list[_Pool] = []
        # How many GPUs more are carried than before anybody ended, at most, and how many of those must be.
        self._gained = self._lacking = 0.0
        self._least_watts = math.inf

    def add(self, pool: _Pool) -> None:
        self._pools.append(pool)
        self._least_watts = min(self._least_watts, pool.each_watts)

    def has_enough(self, end: End) -> bool:
        """Whether enough may have been given back, now that one more has ended: never too strict."""
        # One end makes room for no more GPUs than it gave back, or than its watts carry and one begun.
        if self._least_watts > 0.0:
            self._gained += max(end.gpus, end.watts / self._least_watts + 1.0)
        return self._gained >= self._lacking

    def pools(self) -> list[int]:
        """Pools that may carry the whole request by now."""
        self._freed.add_up(self._name)
        gained, gpus = self._gained if self._least_watts > 0.0 else math.inf, self._request.gpus
        reaches = [(pool.reach(gpus, gained), pool) for pool in self._pools]
        if self._least_watts > 0.0:
            self._lacking = self._gained + gpus - max([reach for reach, _ in reaches])
        return [pool.number for reach, pool in reaches if reach >= gpus and pool.has_node(self._request)]


class _Pool:
    """GPUs of one pool that are carried, zone by zone; worked out once there may be enough of them."""

    __slots__ = (
        "_carried",
        "_counted",
        "_freed",
        "_limited",
        "_racks",
        "_request",
        "_seen",
        "_spread",
        "_total",
        "each_watts",
        "most_gpus",
        "number",
    )

    def __init__(self, freed: Freed, request: JobRequest, pool: int, each_watts: float) -> None:
        self._freed, self._request, self.number = freed, request, pool
        self.each_watts = each_watts
        self.most_gpus = 0  # that are asked for: more need not be counted in a zone
        self._seen = 0  # of those who ended at its site
        self._racks: dict[int, int] = {}  # by bay where somebody ended: what its rack carries now
        self._counted: dict[int, int] | None = None  # by zone: what its racks carry
        self._carried: dict[int, int] = {}  # by zone: what of that is carried above them
        # Zones above which too little is left: of what, and what had been given back of that by then.
        self._limited: dict[int, tuple[int, int]] = {}
        self._spread: float | None = None  # the most that was carried before anybody ended
        self._total = 0  # of all that is carried

    def reach(self, gpus: int, gained: float) -> float:
        """How many GPUs are free and carried at most, of so many that are asked for; never too few.

        `gained` is the most that all who ended made room for.
        """
        freed, plant = self._freed, self._freed.snapshot.plant
        if self._counted is not None:
            self._note()
        reach = freed.snapshot.free_in(self.number) + freed.gpus_of.get(self.number, 0)
        if reach < gpus or not gpus:
            return reach
        reach = min(reach, self._carried_by(plant.common_above[self.number])[0])
        if reach < gpus:
            return reach
        if self._counted is None:
            if self._spread is None:
                self._spread = self._room().most_spread()
            if self._spread + gained < gpus:
                return self._spread + gained
            self._look()
        return min(reach, self._total)

    def has_node(self, request: JobRequest) -> bool:
        """Whether so many GPUs are free on one node, where they may not be spread."""
        snapshot, gpus = self._freed.snapshot, request.gpus
        if request.may_spread or snapshot.most_free_in(self.number) >= gpus:
            return True
        more: dict[int, int] = {}  # by node
        for claim in self._claims():
            for node, freed in claim.nodes:
                more[node] = more.get(node, 0) + freed
        return any(snapshot.gpus_free(node) + freed >= gpus for node, freed in more.items())

    def _room(self) -> Room:
        """As things are before anybody ends, whatever was tried meanwhile."""
        freed = self._freed
        return freed.rooms.room(freed.snapshot, freed.headroom, self._request, self.number)

    def _note(self) -> None:
        """Count anew where somebody ended since the last look."""
        plant, claims = self._freed.snapshot.plant, self._claims()
        if self._seen == len(claims):
            return
        since = claims[self._seen :]
        self._seen = len(claims)
        bays = {plant.spots[node].bay: None for claim in since for node, _ in claim.nodes}
        given_back = self._freed.watts
        changed = {
            zone: None for zone, (tightest, then) in self._limited.items() if given_back[tightest] != then
        }
        for bay in bays:
            if bay in self._freed.gpus_in[self.number]:
                self._count(bay)
                changed[plant.bays[bay].zone] = None
        for zone in changed:
            self._settle(zone)

    def _claims(self) -> list[Claim]:
        return self._freed.claims.get(self._freed.snapshot.plant.pools[self.number][0], [])

    def _look(self) -> None:
        freed, plant = self._freed, self._freed.snapshot.plant
        room, gpus = self._room(), self.most_gpus
        self._seen = len(self._claims())
        zones = plant.zones_of_pool[self.number]
        self._counted = {zone: room.carried(zone, gpus) for zone in zones}
        for bay in freed.gpus_in[self.number]:
            self._count(bay)
        for zone, counted in self._counted.items():
            if counted:
                self._settle(zone)

    def _count(self, bay: int) -> None:
        """A rack carries more than it did."""
        assert self._counted is not None
        freed, each_watts = self._freed, self.each_watts
        zone, rack, left, free = freed.rack(bay)
        before = self._racks.get(bay)
        if before is None:
            before = min(gpus_of(left, each_watts), free)
        able = gpus_of(left + freed.watts[rack], each_watts)
        now = self._racks[bay] = min(able, free + freed.gpus_in[self.number][bay])
        self._counted[zone] += now - before

    def _settle(self, zone: int) -> None:
        assert self._counted is not None
        counted = self._counted[zone]
        carried, tightest = self._carried_by(self._freed.snapshot.plant.own_above[zone])
        if carried < counted:
            self._limited[zone] = (tightest, self._freed.watts[tightest])
        else:
            carried = counted
            self._limited.pop(zone, None)
        self._total += carried - self._carried.get(zone, 0)
        self._carried[zone] = carried

    def _carried_by(self, above: Sequence[tuple[int, float]]) -> tuple[int, int]:
        """How many GPUs some resources carry, and which of them carries the fewest."""
        headroom, given_back, left, tightest = self._freed.headroom, self._freed.watts, math.inf, -1
        for resource, share in above:
            watts = (headroom[resource] + given_back[resource]) // 1 / share
            if watts < left:
                left, tightest = watts, resource
        return gpus_of(left, self.each_watts), tightest
