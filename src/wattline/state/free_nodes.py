"""Free nodes: how many GPUs and CPUs are free on each node, and on which nodes so many are?

The ledger keeps both for the state; what a what-if lays over nodes is kept beside it, for the pools that are
asked for, so that one more costs what it takes.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from wattline.state.lined_up import LinedUp
from wattline.state.state import State


class FreeNodes(LinedUp):
    """A state's nodes, seen at a time, with an overlay."""

    __slots__ = ("_bays", "_by_free", "_free_in", "_gpus", "_millicpus", "_roused")

    def __init__(self, state: State, at: float) -> None:
        super().__init__(state, at)
        self._gpus: dict[int, int] = {}
        # By pool, of those that were asked for: nodes by how many GPUs are free there; and what is laid over.
        self._by_free: dict[int, list[list[int]]] = {}
        self._free_in: dict[int, int] = {}
        self._bays: set[int] = set()  # over nodes of which something is laid
        self._millicpus: dict[int, int] = {}
        self._roused: set[int] = set()  # nodes that rest and count as awake here

    def is_down(self, node: int) -> bool:
        return node in self._ledger.down

    def is_off(self, node: int) -> bool:
        """Whether a node has no power; one that sleeps has."""
        return node in self._ledger.off

    def gpus_free(self, node: int) -> int:
        if self._is_off(node):
            return 0
        return self._ledger.gpus_free[node] + self._gpus.get(node, 0)

    def cpus_free(self, node: int) -> float:
        return (self._ledger.millicpus_free[node] + self._millicpus.get(node, 0)) / 1000

    def nodes_with(self, pool: int, free: int) -> list[int]:
        """Nodes of a pool with so many GPUs free, overlay included, lowest number first."""
        by_free = self.nodes_by_free(pool)
        return by_free[free] if free < len(by_free) else []

    def nodes_by_free(self, pool: int) -> list[list[int]]:
        """Nodes of a pool by how many GPUs they have free."""
        if pool not in self._free_in:
            return self._ledger.nodes_by_free(pool)
        laid = self._by_free.get(pool)
        if laid is None:
            laid = self._by_free[pool] = [list(nodes) for nodes in self._ledger.nodes_by_free(pool)]
            for node in self._roused:
                if self.plant.spots[node].pool == pool:
                    insort(laid[self._ledger.gpus_free[node]], node)
            for node, more in self._gpus.items():
                if more and self.plant.spots[node].pool == pool:
                    self._move(laid, node, self._ledger.gpus_free[node], more)
        return laid

    def free_in(self, pool: int) -> int:
        """All GPUs free in a pool."""
        return self._ledger.free_in_pool[pool] + self._free_in.get(pool, 0)

    def free_on(self, first: int, ends_before: int) -> list[int]:
        """GPUs free on each of some nodes that are numbered one after the other."""
        if self._ledger.down or self.plant.spots[first].bay in self._bays:
            return [self.gpus_free(node) for node in range(first, ends_before)]
        return self._ledger.gpus_free[first:ends_before]

    def most_free_in(self, pool: int) -> int:
        """GPUs free on the node of a pool that has most of them."""
        counts = range(self.plant.biggest_of_pool[pool], -1, -1)
        return next((free for free in counts if self.nodes_with(pool, free)), 0)

    def is_roused(self, node: int) -> bool:
        return node in self._roused

    def _copy_nodes(self, other: FreeNodes) -> None:
        other._gpus, other._free_in, other._bays = dict(self._gpus), dict(self._free_in), set(self._bays)
        other._millicpus, other._roused = dict(self._millicpus), set(self._roused)

    def _rouse_node(self, node: int) -> None:
        self._roused.add(node)
        free, pool = self.gpus_free(node), self.plant.spots[node].pool
        self._free_in[pool] = self._free_in.get(pool, 0) + free
        if pool in self._by_free:
            insort(self._by_free[pool][free], node)

    def _take_gpus(self, node: int, gpus: int) -> None:
        spot = self.plant.spots[node]
        laid, pool = self._gpus.get(node, 0), spot.pool
        self._gpus[node] = laid - gpus
        self._bays.add(spot.bay)
        self._free_in[pool] = self._free_in.get(pool, 0) - (0 if self._is_off(node) else gpus)
        by_free = self._by_free.get(pool)
        if by_free is not None:
            self._move(by_free, node, self._ledger.gpus_free[node] + laid, -gpus)

    def _is_off(self, node: int) -> bool:
        return node in self._ledger.down and node not in self._roused

    def _move(self, by_free: list[list[int]], node: int, free: int, more: int) -> None:
        if more and not self._is_off(node):
            before = by_free[free]
            del before[bisect_left(before, node)]
            insort(by_free[free + more], node)
