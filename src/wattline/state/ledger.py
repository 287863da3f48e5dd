"""One ledger for every finite thing: what is drawn, what is promised, what is left.

Mutated only by State while it folds; everyone else reads it through a Snapshot.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from wattline.state.claim import Claim
from wattline.state.plant import POWER, Plant, ResourceKind

# Sources that meter racks, supplies and loops; elsewhere only claims are known.
METERED_SOURCES = frozenset({"emulated"})


class Ledger:
    """Columns over resources and nodes, and the index of free nodes by how much is free."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        count = len(plant.resources)
        self.caps: list[int] = [resource.cap for resource in plant.resources]
        self.claimed: list[int] = [0] * count
        self.drawn: list[float] = [0.0] * count
        self.drawn_at: list[float | None] = [None] * count
        self.metered: list[bool] = [
            (resource.kind in POWER or resource.kind is ResourceKind.LOOP)
            and plant.sites[plant.site_of_resource[number]].telemetry in METERED_SOURCES
            for number, resource in enumerate(plant.resources)
        ]
        self.gpus_free: list[int] = [spot.node.gpus for spot in plant.spots]
        self.millicpus_free: list[int] = [1000 * spot.node.cpus for spot in plant.spots]
        self.claims: dict[str, Claim] = {}
        self.jobs_on: list[dict[str, None]] = [{} for _ in plant.resources]
        self.jobs_at: dict[int, dict[str, None]] = {}
        # Resources whose draw, cap or heat changed since the last decision; all of them at first.
        self.touched: set[int] = set(range(count))
        self.read_order: dict[int, None] = {}  # metered resources, the longest unread first
        # Rises whenever something that did not fit might fit now. Taking GPUs counts too: placement tries a
        # few arrangements of what is free, and with less free it may come upon one that fits.
        self.loosened = 0
        self._by_free: dict[tuple[str, str], list[list[int]]] = {}
        for number in range(len(plant.spots)):
            self._pool(number)[self.gpus_free[number]].append(number)

    def hold(self, job: str, claim: Claim) -> None:
        """Take a claim; a second one of the same job replaces the first."""
        self.release(job)
        self.loosened += 1
        self.claims[job] = claim
        for resource, amount in claim.amounts:
            self.claimed[resource] += amount
            self.jobs_on[resource][job] = None
        for node, gpus in claim.nodes:
            self._set_free(node, self.gpus_free[node] - gpus)
            self.jobs_at.setdefault(node, {})[job] = None
            self.touched.add(self.plant.spots[node].loop_resource)
        self.millicpus_free[claim.nodes[0][0]] -= claim.millicpus

    def release(self, job: str) -> None:
        claim = self.claims.pop(job, None)
        if claim is None:
            return
        for resource, amount in claim.amounts:
            self.claimed[resource] -= amount
            del self.jobs_on[resource][job]
        for node, gpus in claim.nodes:
            self._set_free(node, self.gpus_free[node] + gpus)
            del self.jobs_at[node][job]
            self.touched.add(self.plant.spots[node].loop_resource)
        self.millicpus_free[claim.nodes[0][0]] += claim.millicpus
        self.loosened += 1

    def measure(self, resource: int, value: float, at: float) -> None:
        """Only newer readings come here."""
        if self.drawn_at[resource] is None or value < self.drawn[resource]:
            self.loosened += 1
        self.drawn[resource] = value
        self.drawn_at[resource] = at
        self.touched.add(resource)
        self.read_order.pop(resource, None)
        self.read_order[resource] = None

    def set_cap(self, resource: int, cap: int) -> None:
        if cap > self.caps[resource]:
            self.loosened += 1
        self.caps[resource] = cap
        self.touched.add(resource)

    def nodes_with(self, site: str, device: str, free: int) -> list[int]:
        """Nodes of a pool with exactly so many GPUs free, lowest number first."""
        pool = self._by_free.get((site, device))
        return pool[free] if pool is not None and free < len(pool) else []

    def biggest(self, site: str, device: str) -> int:
        """GPUs of the biggest node of a pool."""
        return len(self._by_free[site, device]) - 1

    def pools(self) -> list[tuple[str, str]]:
        return list(self._by_free)

    def _pool(self, node: int) -> list[list[int]]:
        spot = self.plant.spots[node]
        key = (spot.site.name, spot.node.device.name if spot.node.device else "")
        pool = self._by_free.setdefault(key, [])
        while len(pool) <= spot.node.gpus:
            pool.append([])
        return pool

    def _set_free(self, node: int, free: int) -> None:
        pool = self._pool(node)
        before = pool[self.gpus_free[node]]
        del before[bisect_left(before, node)]
        insort(pool[free], node)
        self.gpus_free[node] = free
