"""One ledger for every finite thing: what is drawn, what is promised, what is left.

Mutated only by State while it folds; everyone else reads it through a Snapshot.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable

from wattline.state.claim import Claim
from wattline.state.plant import Plant, ResourceKind

NEARLY_FULL_FRACTION = 0.8
# What the meter of a resource reads, where it has one.
_DRAWN = {
    ResourceKind.RACK: "rack_watts",
    ResourceKind.SUPPLY: "supply_watts",
    ResourceKind.LOOP: "loop_heat_watts",
}


class Ledger:
    """Columns over resources and nodes, and the index of free nodes by how much is free."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        count = len(plant.resources)
        # How often something changed that decides what fits: of each rack, in each zone, at each site.
        self.rack_changes: list[int] = [0] * count
        self.zone_changes: list[int] = [0] * len(plant.zones)
        self.site_changes: list[int] = [0] * len(plant.sites)
        self.caps: list[int] = [resource.cap for resource in plant.resources]
        self.promised: list[int] = [resource.idle for resource in plant.resources]  # and what idle nodes draw
        self.drawn: list[float] = [0.0] * count
        self.drawn_at: list[float | None] = [None] * count
        self.metered: list[bool] = [
            resource.kind in _DRAWN
            and plant.sites[plant.site_of_resource[number]].is_metered(resource.name, _DRAWN[resource.kind])
            for number, resource in enumerate(plant.resources)
        ]
        self.metered_site: list[bool] = [False] * len(plant.sites)
        for number in range(count):
            if self.metered[number]:
                self.metered_site[plant.site_number_of_resource[number]] = True
        self.gpus_free: list[int] = [spot.node.gpus for spot in plant.spots]
        self.millicpus_free: list[int] = [1000 * spot.node.cpus for spot in plant.spots]
        self.claims: dict[str, Claim] = {}
        self.jobs_on: list[dict[str, None]] = [{} for _ in plant.resources]
        self.jobs_at: dict[int, dict[str, None]] = {}
        # Meters tell what changed; a site that is heard vouches for what its meters last said, but for those
        # that said they cannot read.
        self.heard_at: list[float] = [-math.inf] * len(plant.sites)
        self.everywhere = [True] * len(plant.sites)
        self.heard_all_at = -math.inf  # when all of them were last heard at once
        self.mute: set[int] = set()
        self.unvouched: set[int] = set(range(count))  # these, and what was never read
        self.mute_of_site: list[set[int]] = [set() for _ in plant.sites]
        # Metered resources that draw more than this share of their cap: only these can be over it.
        self.nearly_full: set[int] = set()
        self.read_order: list[dict[int, None]] = [{} for _ in plant.sites]  # the longest unread first
        # Resources whose draw, cap or heat changed since the last decision; all of them at first.
        self.touched: set[int] = set(range(count))
        # Sites where something has more room than then, or is cooler.
        self.loosened: set[int] = set(range(len(plant.sites)))
        self.free_in_pool: list[int] = [0] * len(plant.pools)
        self.down: set[int] = set()  # nodes that are off or rest: nothing is free there, whoever left
        self.off: set[int] = set()
        self._resting: set[int] = set()
        self.saved: dict[int, int] = {}  # of what idle nodes draw, what those that sleep do not
        # GPUs that somebody holds past Wattline, by node; what our jobs leave there; the watts they may draw.
        self.others: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self.others_take: dict[int, int] = {}
        self._by_free: list[list[list[int]]] = [
            [[] for _ in range(biggest + 1)] for biggest in plant.biggest_of_pool
        ]
        for number, spot in enumerate(plant.spots):
            self._by_free[spot.pool][spot.node.gpus].append(number)
            self.free_in_pool[spot.pool] += spot.node.gpus

    @property
    def claimed(self) -> list[int]:
        """What jobs were promised of each resource, without what idle nodes draw."""
        return [
            promised - resource.idle + self.saved.get(number, 0) - self.others_take.get(number, 0)
            for number, (promised, resource) in enumerate(
                zip(self.promised, self.plant.resources, strict=True)
            )
        ]

    def hold(self, job: str, claim: Claim) -> None:
        """Take a claim; a second one of the same job replaces the first."""
        if job in self.claims:
            self.release(job)
        self.claims[job] = claim
        promised, jobs_on = self.promised, self.jobs_on
        for resource, amount in claim.amounts:
            promised[resource] += amount
            jobs_on[resource][job] = None
        for node, gpus in claim.nodes:
            spot = self.plant.spots[node]
            self._move(node, -gpus)
            self.jobs_at.setdefault(node, {})[job] = None
            self.touched.add(spot.loop_resource)
            self._note_change(spot.power[0][0])
        self.millicpus_free[claim.nodes[0][0]] -= claim.millicpus

    def release(self, job: str) -> None:
        claim = self.claims.pop(job, None)
        if claim is None:
            return
        promised, jobs_on, links = self.promised, self.jobs_on, self.plant.sites_of_link
        for resource, amount in claim.amounts:
            promised[resource] -= amount
            del jobs_on[resource][job]
            if resource in links:
                self.loosened.update(links[resource])
        for node, gpus in claim.nodes:
            spot = self.plant.spots[node]
            self._move(node, gpus)
            del self.jobs_at[node][job]
            self.touched.add(spot.loop_resource)
            self._note_change(spot.power[0][0])
        first = claim.nodes[0][0]
        self.loosened.add(self.plant.site_number_of_node[first])
        self.millicpus_free[first] += claim.millicpus

    def measure(self, resource: int, value: float, at: float, *, was_believed: bool) -> None:
        """Only newer readings come here. `was_believed`: the last decision took the one before as it was."""
        before, promised = self.drawn[resource], self.promised[resource]
        if self.drawn_at[resource] is None or (value < before and before > promised):
            self.relieve(resource)
        if not was_believed or before > promised or value > promised:  # else the promise counts, as it did
            self._note_change(resource)
        self._note_full(resource, value)
        self.drawn[resource] = value
        self.drawn_at[resource] = at
        if resource in self.mute:
            self.set_mute(resource, is_mute=False)
        self.unvouched.discard(resource)
        self.touched.add(resource)
        order = self.read_order[self.plant.site_number_of_resource[resource]]
        order.pop(resource, None)
        order[resource] = None

    def set_cap(self, resource: int, cap: int) -> None:
        if cap > self.caps[resource]:
            self.relieve(resource)
        self._note_change(resource)
        self.caps[resource] = cap
        self.touched.add(resource)
        self._note_full(resource, self.drawn[resource])

    def _note_full(self, resource: int, drawn: float) -> None:
        if drawn > NEARLY_FULL_FRACTION * self.caps[resource]:
            self.nearly_full.add(resource)
        else:
            self.nearly_full.discard(resource)

    def relieve(self, resource: int) -> None:
        """Something here has more room than it had, though nobody left."""
        site = self.plant.site_number_of_resource[resource]
        self.loosened.update((site,) if site >= 0 else self.plant.sites_of_link[resource])

    def set_mute(self, resource: int, *, is_mute: bool) -> None:
        """A meter says that it cannot read, or has read again."""
        there = self.mute_of_site[self.plant.site_number_of_resource[resource]]
        if is_mute:
            self.mute.add(resource)
            self.unvouched.add(resource)
            there.add(resource)
        else:
            self.mute.discard(resource)
            there.discard(resource)
        self._note_change(resource)

    def _note_change(self, resource: int) -> None:
        self.rack_changes[resource] += 1
        for zone in self.plant.zones_of_rack.get(resource, ()):
            self.zone_changes[zone] += 1
        site = self.plant.site_number_of_resource[resource]
        if site >= 0:
            self.site_changes[site] += 1

    def read_at(self, resource: int) -> float | None:
        """When a draw was last known: read then, or vouched for since."""
        at = self.drawn_at[resource]
        if at is None or resource in self.mute:
            return at
        return max(at, self.heard(self.plant.site_number_of_resource[resource]))

    def heard(self, site: int) -> float:
        """When a site last vouched for its meters."""
        return max(self.heard_at[site], self.heard_all_at)

    def rest(self) -> None:
        """A decision has seen all that changed."""
        self.touched.clear()
        self.loosened.clear()

    def nodes_with(self, pool: int, free: int) -> list[int]:
        """Nodes of a pool with exactly so many GPUs free, lowest number first."""
        by_free = self._by_free[pool]
        return by_free[free] if free < len(by_free) else []

    def set_up(self, node: int, *, is_up: bool) -> None:
        """A node went off, or is back."""
        (self.off.discard if is_up else self.off.add)(node)
        self._set_there(node, is_there=is_up and node not in self._resting)

    def set_awake(self, node: int, *, is_awake: bool) -> None:
        """A node is about to sleep, sleeps or wakes, or takes work again."""
        (self._resting.discard if is_awake else self._resting.add)(node)
        self._set_there(node, is_there=is_awake and node not in self.off)

    def save(self, amounts: Iterable[tuple[int, int]], sign: int) -> None:
        """A node sleeps and leaves some of its idle watts to others, or takes them back."""
        for resource, watts in amounts:
            self.saved[resource] = self.saved.get(resource, 0) + sign * watts
            self.promised[resource] -= sign * watts
            self._note_change(resource)
            if sign > 0:
                self.relieve(resource)

    def set_others(self, node: int, gpus: int, amounts: Iterable[tuple[int, int]]) -> None:
        """Somebody holds so many GPUs of a node past Wattline; `amounts` is what they take more than before.

        They may hold some that were promised to a job of ours: then nothing is free, not less than that.
        """
        left = self._left.pop(node, self.gpus_free[node])
        self.others.pop(node, None)
        if gpus:
            self.others[node], self._left[node] = gpus, left
        for resource, watts in amounts:
            self.others_take[resource] = self.others_take.get(resource, 0) + watts
            self.promised[resource] += watts
            self.relieve(resource)
            self._note_change(resource)
        spot = self.plant.spots[node]
        self._free(node, max(0, left - gpus))
        self.relieve(spot.power[0][0])
        self._note_change(spot.power[0][0])

    def _set_there(self, node: int, *, is_there: bool) -> None:
        if (node not in self.down) is is_there:
            return
        spot, free = self.plant.spots[node], self.gpus_free[node]
        there = self._by_free[spot.pool][free]
        if is_there:
            self.down.discard(node)
            insort(there, node)
            self.relieve(spot.power[0][0])
        else:
            self.down.add(node)
            del there[bisect_left(there, node)]
        self._note_change(spot.power[0][0])
        self.free_in_pool[spot.pool] += free if is_there else -free

    def nodes_by_free(self, pool: int) -> list[list[int]]:
        return self._by_free[pool]

    def _move(self, node: int, gpus: int) -> None:
        if not gpus:
            return
        if node in self._left:
            self._left[node] += gpus
            self._free(node, max(0, self._left[node] - self.others[node]))
        else:
            self._free(node, self.gpus_free[node] + gpus)

    def _free(self, node: int, gpus: int) -> None:
        free = self.gpus_free[node]
        self.gpus_free[node] = gpus
        if node in self.down or free == gpus:
            return
        spot = self.plant.spots[node]
        by_free = self._by_free[spot.pool]
        before = by_free[free]
        del before[bisect_left(before, node)]
        insort(by_free[gpus], node)
        self.free_in_pool[spot.pool] += gpus - free
