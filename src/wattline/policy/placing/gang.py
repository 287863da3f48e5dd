"""Gangs: over which nodes does a job spread that needs several, so that what is above them carries it?"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, groupby

from wattline.policy.headroom.heat import is_at_limit
from wattline.policy.headroom.power import Headroom
from wattline.policy.headroom.rooms import Room, zone_spans
from wattline.spec.pipeline import Locality
from wattline.spec.policy import Thresholds
from wattline.state import JobRequest, Plant, ResourceKind, Snapshot, peak_watts_on

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
    _each: dict[int, float] = field(default_factory=dict)  # by pool: watts that one GPU adds
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
            shown = self._gather(pool)
            if len(shown) > 1:
                yield tuple(shown.items())
            return
        for levels in self._levels(pool):
            taken = dict[int, int]()
            if room is not None:
                taken = _Filling(self, levels, room).fill()
            if not taken:
                taken = _Filling(self, levels, None).fill()
            if len(taken) > 1:
                yield tuple(taken.items())

    def least_missing(self, nodes: Iterable[tuple[int, int]], room: Room, enough: float = math.inf) -> float:
        """How far an arrangement is from fitting at least: shortfalls relative to what is asked, summed.

        All nodes are of one pool, and `room` is what that has. No more are summed than are `enough`.
        """
        plant, headroom, each_watts, missing = self.snapshot.plant, self.headroom, room.each_watts, 0.0
        racks, zones, bays = dict[int, int](), dict[int, int](), dict[int, int]()
        bay_of, zone_of = _standing(plant)
        for node, gpus in nodes:
            bay, zone = bay_of[node], zone_of[node]
            rack = plant.bays[bay].rack_resource
            racks[rack], bays[rack] = racks.get(rack, 0) + gpus, bay
            zones[zone] = zones.get(zone, 0) + gpus
        amounts: dict[int, float] = {}
        for zone, gpus in zones.items():
            for resource, share in plant.zones[zone].above:
                amounts[resource] = amounts.get(resource, 0.0) + gpus * each_watts * share
        for resource, amount in amounts.items():
            if headroom[resource] < amount:
                missing += 1.0 - headroom[resource] / amount
        for rack, gpus in racks.items():
            if missing >= enough:
                break
            watts = gpus * each_watts
            if room.rack_left(bays[rack])[0] < watts:  # whole watts: that much is left, and maybe a part more
                missing += max(0.0, 1.0 - headroom[rack] / watts)
        return missing

    def _levels(self, pool: int) -> list[list[list[int]]]:
        """The nodes of each domain, by how many GPUs they have free."""
        snapshot = self.snapshot
        if self.request.locality in _NEAR:
            near = self.domains(pool)
            return [[list(nodes) for _, nodes in groupby(domain, snapshot.gpus_free)] for domain in near]
        if snapshot.free_in(pool) < self.request.gpus:
            return []
        return [[nodes for nodes in reversed(snapshot.nodes_by_free(pool)[1:]) if nodes]]

    def _free(self, pool: int) -> Iterator[int]:
        """Nodes with free GPUs, fullest free first."""
        return chain.from_iterable(reversed(self.snapshot.nodes_by_free(pool)[1:]))

    def _gather(self, pool: int) -> dict[int, int]:
        """GPUs by node, the fullest free first, after one that has the CPUs it needs; whatever they draw."""
        snapshot, left = self.snapshot, self.request.gpus
        if snapshot.free_in(pool) < left:
            return {}
        first = next(
            (node for node in self._free(pool) if snapshot.cpus_free(node) >= self.request.cpus), None
        )
        if first is None:
            return {}
        taken = {first: min(left, snapshot.gpus_free(first))}
        left -= taken[first]
        for free in range(snapshot.plant.biggest_of_pool[pool], 0, -1):
            if left == 0:
                break
            enough = -(-left // free)
            nodes = [node for node in snapshot.nodes_with(pool, free)[: enough + 1] if node != first][:enough]
            taken.update(dict.fromkeys(nodes, free))
            left -= free * len(nodes)
            if left < 0:  # of the last one, as many as it takes
                taken[nodes[-1]], left = free + left, 0
        return {} if left else taken

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
            watts = self.each_watts(node)
            loads = [(number, share * watts) for number, share in spot.power]
            known = self._loads[spot.bay] = (*loads, (spot.loop_resource, watts))
        return known

    def each_watts(self, node: int) -> float:
        """What one GPU of the job adds to what idles on a node."""
        spot = self.snapshot.plant.spots[node]
        watts = self._each.get(spot.pool)
        if watts is None:
            idle = spot.node.device.idle_watts if spot.node.device else 0.0
            peak = peak_watts_on(self.request, self.snapshot.plant, node, 1, self.power_fraction)
            watts = self._each[spot.pool] = max(0.0, peak - idle)
        return watts

    def _domain(self, node: int) -> str:
        rack = self.snapshot.plant.spots[node].rack
        names = {Locality.RACK: rack.name, Locality.SWITCH: rack.switch, Locality.ROW: rack.row}
        return names[self.request.locality]

    def is_at_limit(self, node: int) -> bool:
        """Whether a node is too hot for the job as it is."""
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


@lru_cache(maxsize=8)
def _standing(plant: Plant) -> tuple[list[int], list[int]]:
    """By node: its bay, and its zone."""
    bays = [spot.bay for spot in plant.spots]
    return bays, [plant.bays[bay].zone for bay in bays]


class _Filling:
    """One gang that is laid out: GPUs by node, whole nodes before parts of them.

    Nodes come by how many GPUs they have free, then by number: those of one zone, and of one rack, follow
    each other, and where either is known to carry too little, all of them are passed over at once.
    """

    __slots__ = (
        "_above",
        "_bay_of",
        "_left",
        "_levels",
        "_most_in",
        "_most_of",
        "_room",
        "_snapshot",
        "_spread",
        "_zone_of",
    )

    def __init__(self, spread: Spread, levels: Sequence[Sequence[int]], room: Room | None) -> None:
        self._spread, self._snapshot = spread, spread.snapshot
        self._levels, self._room = levels, room
        self._above = _Left(spread, spread.each_watts(levels[0][0]) if levels else 0.0)
        self._left = spread.request.gpus
        self._bay_of, self._zone_of = _standing(spread.snapshot.plant)
        # By bay and by zone: no more than this, and no more once more is taken.
        self._most_of: dict[int, int] = {}
        self._most_in: dict[int, int] = {}

    def fill(self) -> dict[int, int]:
        """None where there are too few."""
        first = self._first()
        if first is None:
            return {}
        taken: dict[int, int] = {}
        self._take(first, taken, is_whole=False)
        for is_whole in (True, False):
            if not self._left:
                return taken
            for node in self._walk(is_whole=is_whole):
                if node not in taken:
                    self._take(node, taken, is_whole=is_whole)
                    if not self._left:
                        return taken
        return {}

    def _first(self) -> int | None:
        """The node that carries most; it has the job's CPUs."""
        snapshot, cpus = self._snapshot, self._spread.request.cpus
        ablest = self._left if self._room is None else self._room.most_on_one()
        first, most = None, 0
        for nodes in self._levels:
            free = snapshot.gpus_free(nodes[0])
            position = 0
            while position < len(nodes):
                if most >= ablest or free <= most:
                    return first  # none of the rest has more
                position = self._next(nodes, position, most + 1)
                if position == len(nodes):
                    break
                node = nodes[position]
                if (
                    snapshot.cpus_free(node) >= cpus
                    and (able := self._fits(node, min(self._left, free))) > most
                ):
                    first, most = node, able
                position += 1
        return first

    def _walk(self, *, is_whole: bool) -> Iterator[int]:
        """Nodes that may carry all that is wanted of them, or one GPU at least."""
        for nodes in self._levels:
            free, position = self._snapshot.gpus_free(nodes[0]), 0
            while True:
                position = self._next(nodes, position, min(self._left, free) if is_whole else 1)
                if position == len(nodes):
                    break
                yield nodes[position]
                position += 1

    def _next(self, nodes: Sequence[int], position: int, gpus: int) -> int:
        """Where the next node is of which zone and rack may carry so many."""
        if self._room is None:
            return position
        plant = self._snapshot.plant
        spans, bay_of, zone_of = zone_spans(plant), self._bay_of, self._zone_of
        most_in, most_of = self._most_in, self._most_of
        while position < len(nodes):
            node = nodes[position]
            bay, zone = bay_of[node], zone_of[node]
            most = most_in.get(zone)
            if most is None:
                most = most_in[zone] = self._room.above(zone)
            if most < gpus:
                position = bisect_left(nodes, spans[bay], position)
                continue
            most = most_of.get(bay)
            if most is None:
                most = most_of[bay] = self._room.rack(bay)
            if most >= gpus:
                break
            position = bisect_left(nodes, plant.bays[bay].ends_before, position)
        return position

    def _fits(self, node: int, wanted: int) -> int:
        if self._room is None:
            return wanted
        zone, bay = self._zone_of[node], self._bay_of[node]
        above = self._above.carries(zone, wanted)
        if above < wanted:
            self._most_in[zone] = above
        able = self._above.rack_carries(bay, above) if above else 0
        if able < wanted:
            self._most_of[bay] = able
        return 0 if able and self._spread.is_at_limit(node) else able

    def _take(self, node: int, taken: dict[int, int], *, is_whole: bool) -> None:
        wanted = min(self._left, self._snapshot.gpus_free(node))
        gpus = self._fits(node, wanted)
        if gpus == 0 or (is_whole and gpus < wanted):
            return
        taken[node] = gpus
        self._left -= gpus
        if self._room is not None:
            self._above.take(self._zone_of[node], self._bay_of[node], gpus)
            if gpus < wanted:  # that was all it carries
                self._most_of[self._bay_of[node]] = 0


class _Left:
    """What is left above the nodes of a pool while a gang takes of it, in whole watts."""

    __slots__ = ("_each_watts", "_headroom", "_left", "_loads", "_plant")

    def __init__(self, spread: Spread, each_watts: float) -> None:
        self._plant, self._headroom, self._each_watts = spread.snapshot.plant, spread.headroom, each_watts
        self._left: dict[int, int] = {}
        # By zone, what is above its racks, each with what one GPU takes of it: one for all nodes there.
        self._loads: dict[int, list[tuple[int, float]]] = {}

    def carries(self, zone: int, gpus: int) -> int:
        """How many of so many GPUs all that is above the racks of a zone still carries."""
        left, loads = self._left, self._loads.get(zone)
        if loads is None:
            loads = self._look_up(zone)
        for resource, watts in loads:
            able = int(left[resource] / watts)
            if able < gpus:
                gpus = able
        return gpus

    def rack_carries(self, bay: int, gpus: int) -> int:
        """How many of so many GPUs the rack of a bay still carries."""
        if self._each_watts <= 0.0:
            return gpus
        rack = self._plant.bays[bay].rack_resource
        if rack not in self._left:
            self._left[rack] = math.floor(self._headroom[rack])
        return min(gpus, int(self._left[rack] / self._each_watts))

    def take(self, zone: int, bay: int, gpus: int) -> None:
        """GPUs of a node of which it was asked before how many are carried."""
        if self._each_watts <= 0.0:
            return
        left = self._left
        for resource, watts in self._loads[zone]:
            left[resource] -= math.ceil(gpus * watts)
        left[self._plant.bays[bay].rack_resource] -= math.ceil(gpus * self._each_watts)

    def _look_up(self, zone: int) -> list[tuple[int, float]]:
        each_watts, left = self._each_watts, self._left
        loads = [(resource, share * each_watts) for resource, share in self._plant.zones[zone].above]
        loads = self._loads[zone] = [load for load in loads if load[1] > 0.0]
        for resource, _ in loads:
            if resource not in left:
                left[resource] = math.floor(self._headroom[resource])
        return loads
