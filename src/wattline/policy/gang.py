"""Gangs: over which nodes does a job spread that needs several, so that what is above them carries it?"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from wattline.policy.heat import is_at_limit
from wattline.policy.power import Headroom
from wattline.policy.rooms import Room
from wattline.spec.pipeline import Locality
from wattline.spec.policy import Thresholds
from wattline.state import JobRequest, ResourceKind, Snapshot, peak_watts_on

_NEAR = frozenset({Locality.RACK, Locality.SWITCH, Locality.ROW})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What a gang asks of the nodes of one pool."""

    snapshot: Snapshot
    thresholds: Thresholds
    request: JobRequest
    headroom: Headroom
    power_fraction: float = 1.0
    _loads: dict[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)  # by bay
    _resting: dict[int, bool] = field(default_factory=dict)  # by cooling: too hot even at rest
    _hot: dict[int, bool] = field(default_factory=dict)  # by node that is read

    def domains(self, pool: int) -> list[list[int]]:
        """Nodes with free GPUs, fullest free first, that are near each other and have enough together."""
        snapshot, found, enough = self.snapshot, dict[str, list[int]](), self.request.gpus
        if self.request.locality not in _NEAR:
            return [list(self._free(pool))] if snapshot.free_in(pool) >= enough else []
        for node in self._free(pool):
            found.setdefault(self._domain(node), []).append(node)
        domains = [nodes for nodes in found.values() if sum(map(snapshot.gpus_free, nodes)) >= enough]
        return sorted(domains, key=min)

    def places(self, pool: int, room: Room | None) -> Iterator[tuple[tuple[int, int], ...]]:
        """One arrangement in each domain: few nodes, of which few are shared.

        It keeps below every cap and off nodes that are too hot where that can be done; where it cannot, or
        there is known to be no `room`, the arrangement is one that shows what is short.
        """
        if room is None and self.request.locality not in _NEAR:
            domains = [self._first_free(pool)] if self.snapshot.free_in(pool) >= self.request.gpus else []
        else:
            domains = self.domains(pool)
        for nodes in domains:
            taken = dict[int, int]()
            if room is not None:
                taken = self._fill(self._carried(nodes, room), _Left(spread=self))
            if not taken:
                taken = self._fill(nodes, None)
            if len(taken) > 1:
                yield tuple(taken.items())

    def _free(self, pool: int) -> Iterator[int]:
        """Nodes with free GPUs, fullest free first."""
        snapshot = self.snapshot
        for free in range(snapshot.plant.biggest_of_pool[pool], 0, -1):
            yield from snapshot.nodes_with(pool, free)

    def _first_free(self, pool: int) -> list[int]:
        """As many of them as hold the job, with one that has the CPUs it needs."""
        snapshot, nodes, gpus, has_cpus = self.snapshot, list[int](), 0, False
        for node in self._free(pool):
            nodes.append(node)
            gpus += snapshot.gpus_free(node)
            has_cpus = has_cpus or snapshot.cpus_free(node) >= self.request.cpus
            if has_cpus and gpus >= self.request.gpus:
                break
        return nodes

    def _carried(self, nodes: list[int], room: Room) -> list[int]:
        """Those on whose rack at least one GPU more is carried."""
        spots, known = self.snapshot.plant.spots, dict[int, bool]()
        found = []
        for node in nodes:
            bay = spots[node].bay
            carries = known.get(bay)
            if carries is None:
                carries = known[bay] = room.carries(bay)
            if carries:
                found.append(node)
        return found

    def may_be_carried(self, pools: Iterable[int], short: Collection[str]) -> bool:
        """Whether an arrangement that was not tried might do: not if all caps together are too small.

        `short` are the rules that were against those that were tried.
        """
        domains = [nodes for pool in pools for nodes in self.domains(pool)]
        return any(self._sums_suffice(nodes, short) for nodes in domains)

    def loads(self, node: int) -> tuple[tuple[int, float], ...]:
        """The resources above a node, each with what one GPU there takes of it in watts."""
        spot = self.snapshot.plant.spots[node]
        known = self._loads.get(spot.bay)
        if known is None:
            idle = spot.node.device.idle_watts if spot.node.device else 0.0
            peak = peak_watts_on(self.request, self.snapshot.plant, node, 1, self.power_fraction)
            above = max(0.0, peak - idle)
            shares = (*spot.power, (spot.loop_resource, 1.0))
            known = self._loads[spot.bay] = tuple([(number, share * above) for number, share in shares])
        return known

    def _domain(self, node: int) -> str:
        rack = self.snapshot.plant.spots[node].rack
        names = {Locality.RACK: rack.name, Locality.SWITCH: rack.switch, Locality.ROW: rack.row}
        return names[self.request.locality]

    def _is_at_limit(self, node: int) -> bool:
        if node in self.snapshot.conditions.node_celsius:
            hot = self._hot.get(node)
            if hot is None:
                hot = self._hot[node] = is_at_limit(self.snapshot, self.request, node, self.thresholds)
            return hot
        # Where nobody reads them, all that are cooled alike count as resting alike.
        cooling = self.snapshot.plant.bays[self.snapshot.plant.spots[node].bay].cooling
        known = self._resting.get(cooling)
        if known is None:
            known = is_at_limit(self.snapshot, self.request, node, self.thresholds)
            self._resting[cooling] = known
        return known

    def _fill(self, nodes: list[int], room: _Left | None) -> dict[int, int]:
        """GPUs by node, whole nodes before parts of them; none where there are too few."""
        snapshot = self.snapshot
        left = self.request.gpus

        def fits(node: int) -> int:
            wanted = min(left, snapshot.gpus_free(node))
            if room is None:
                return wanted
            able = room.carries(node, wanted)
            return 0 if able and self._is_at_limit(node) else able

        # The first node carries the job's CPUs.
        first, most = None, 0
        for node in nodes:
            if snapshot.gpus_free(node) <= most:
                break  # none of the rest has more
            if snapshot.cpus_free(node) >= self.request.cpus and (able := fits(node)) > most:
                first, most = node, able
        if first is None:
            return {}
        taken: dict[int, int] = {}
        for whole in (True, False):
            for node in (first, *nodes):
                gpus = fits(node)
                part = gpus < min(left, snapshot.gpus_free(node))
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
            left = self.headroom[number]
            there[resources[number].kind] += watts * (left // watts) if watts > 0 else left
        return all(self.request.gpus * watts <= there[kind] for kind, watts in least.items())


@dataclass(slots=True, kw_only=True)
class _Left:
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
            self.left[number] = self.spread.headroom[number]
        return self.left[number]
