"""Gangs: over which nodes does a job spread that needs several, so that what is above them carries it?"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from wattline.policy.heat import is_at_limit
from wattline.policy.power import free
from wattline.spec.pipeline import Locality
from wattline.spec.policy import Thresholds
from wattline.state import JobRequest, Place, ResourceKind, Snapshot, peak_watts_on

ONE_NODE = frozenset({Locality.NVLINK, Locality.NODE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What a gang asks of the nodes of one pool."""

    snapshot: Snapshot
    thresholds: Thresholds
    request: JobRequest
    power_fraction: float = 1.0

    def domains(self, site: str, device: str) -> list[list[int]]:
        """Nodes with free GPUs that are near enough to each other and have enough of them."""
        snapshot, found = self.snapshot, dict[str, list[int]]()
        for node in snapshot.plant.nodes_of_site[site]:
            spot = snapshot.plant.spots[node]
            if spot.node.device is not None and spot.node.device.name == device and snapshot.gpus_free(node):
                found.setdefault(self._domain(node), []).append(node)
        enough = self.request.gpus
        return [nodes for nodes in found.values() if sum(map(snapshot.gpus_free, nodes)) >= enough]

    def places(self, site: str, device: str) -> Iterator[Place]:
        """One arrangement in each domain: fullest free first, so that few nodes are shared.

        It keeps below every cap and off nodes that are too hot where that can be done; where it cannot, the
        arrangement is one that shows what is short.
        """
        for nodes in self.domains(site, device):
            order = sorted(nodes, key=lambda node: (-self.snapshot.gpus_free(node), node))
            cool = [node for node in order if not self._is_at_limit(node)]
            taken = self._fill(cool, _Room(spread=self)) or self._fill(order, None)
            if len(taken) > 1:
                names = self.snapshot.plant.spots
                yield Place(site, tuple((names[node].node.name, gpus) for node, gpus in taken.items()))

    def may_be_carried(self, pools: Iterable[tuple[str, str]], short: Collection[str]) -> bool:
        """Whether an arrangement that was not tried might do: not if all caps together are too small.

        `short` are the rules that were against those that were tried.
        """
        domains = [nodes for site, device in pools for nodes in self.domains(site, device)]
        return any(self._sums_suffice(nodes, short) for nodes in domains)

    def loads(self, node: int) -> tuple[tuple[int, float], ...]:
        """The resources above a node, each with what one GPU there takes of it in watts."""
        spot = self.snapshot.plant.spots[node]
        idle = spot.node.device.idle_watts if spot.node.device else 0.0
        peak = peak_watts_on(self.request, self.snapshot.plant, node, 1, self.power_fraction)
        above = max(0.0, peak - idle)
        return tuple((number, share * above) for number, share in (*spot.power, (spot.loop_resource, 1.0)))

    def _domain(self, node: int) -> str:
        rack = self.snapshot.plant.spots[node].rack
        names = {Locality.RACK: rack.name, Locality.SWITCH: rack.switch, Locality.ROW: rack.row}
        return names.get(self.request.locality, "")

    def _is_at_limit(self, node: int) -> bool:
        return is_at_limit(self.snapshot, self.request, node, self.thresholds)

    def _fill(self, nodes: list[int], room: _Room | None) -> dict[int, int]:
        """GPUs by node, whole nodes before parts of them; empty where they do not come together."""
        left = self.request.gpus

        def fits(node: int) -> int:
            wanted = min(left, self.snapshot.gpus_free(node))
            return wanted if room is None else room.carries(node, wanted)

        # The first node carries the job's CPUs.
        able = (node for node in nodes if self.snapshot.cpus_free(node) >= self.request.cpus)
        first = max(able, key=fits, default=None)
        if first is None or fits(first) == 0:
            return {}
        taken: dict[int, int] = {}
        for whole in (True, False):
            for node in (first, *nodes):
                gpus = fits(node)
                part = gpus < min(left, self.snapshot.gpus_free(node))
                if node in taken or gpus == 0 or (part and whole and node != first):
                    continue
                taken[node] = gpus
                left -= gpus
                if room is not None:
                    room.take(node, gpus)
                if left == 0:
                    return taken
        return {}

    def _sums_suffice(self, nodes: list[int], short: Collection[str]) -> bool:
        spots, resources = self.snapshot.plant.spots, self.snapshot.plant.resources
        if "heat.throttle" in short and len({spots[node].loop_resource for node in nodes}) == 1:
            return False  # one loop gets as warm however its nodes share the work
        if len({spots[node].rack.name for node in nodes}) == 1:
            return False  # … and nodes of one rack hang on the same of everything
        each: dict[int, float] = {}  # the least that one GPU takes of each resource above them
        least: dict[ResourceKind, float] = {}  # … and of all resources of a kind
        for node in nodes:
            taken: dict[ResourceKind, float] = {}
            for number, watts in self.loads(node):
                kind = resources[number].kind
                each[number] = min(watts, each.get(number, watts))
                taken[kind] = taken.get(kind, 0.0) + watts
            least = {kind: min(watts, least.get(kind, watts)) for kind, watts in taken.items()}
        there = dict.fromkeys(least, 0.0)
        for number, watts in each.items():
            left = free(self.snapshot, number, self.thresholds)
            there[resources[number].kind] += watts * (left // watts) if watts > 0 else left
        return all(self.request.gpus * watts <= there[kind] for kind, watts in least.items())


@dataclass(slots=True, kw_only=True)
class _Room:
    """What is left above the nodes while a gang takes of it."""

    spread: Spread
    left: dict[int, float] = field(default_factory=dict)

    def carries(self, node: int, gpus: int) -> int:
        """How many of so many GPUs the headroom above a node still carries."""
        for number, watts in self.spread.loads(node):
            if watts > 0:
                gpus = min(gpus, int(math.floor(self._left(number)) / watts))
        return gpus

    def take(self, node: int, gpus: int) -> None:
        for number, watts in self.spread.loads(node):
            self.left[number] = self._left(number) - math.ceil(gpus * watts)

    def _left(self, number: int) -> float:
        if number not in self.left:
            self.left[number] = free(self.spread.snapshot, number, self.spread.thresholds)
        return self.left[number]
