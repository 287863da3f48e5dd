"""Meters: what do the facility's meters say of the truth, and what has changed since they last spoke?

Like plant meters they report by change of value. Unless they are exact they are noisy, a few seconds late,
and now and then one of them is silent for a while.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heapify, heappop, heappush
from random import Random

from wattline.state import Plant, ResourceKind
from wattline.twin.truth import Touched, Truth
from wattline.twin.truth.lots import draw_lot

Told = tuple[str, str, float | None]  # subject, quantity, value; None: this meter cannot be read
_Meter = tuple[str, int]  # at a resource or a node, with its number
_RESOURCE, _NODE = "resource", "node"

_WATTS_OF = {
    ResourceKind.RACK: "rack_watts",
    ResourceKind.SUPPLY: "supply_watts",
    ResourceKind.LOOP: "loop_heat_watts",
}
_STATED = frozenset({"supply_celsius", "flow_fraction"})  # set points: not measured
# What counts as moved.
_CAP_FRACTION = 0.01
_COOLANT_KELVIN = 0.5
_DIE_KELVIN = 1.0
_GPU_LIMIT_FRACTION = 0.02
_FULL_FRACTION = 0.95  # so full that every look is told
_URGENT_FRACTION = 0.97
_URGENT_SECONDS = 10.0
# A hall that warms by so much is noticed on all its nodes, touched or not.
_HALL_KELVIN = 2.0
# How far meters are from the truth; assumed.
_WATTS_NOISE_FRACTION = 0.005
_CELSIUS_NOISE_KELVIN = 0.3
_LATE_SECONDS = 3.0
_OUTAGE_SECONDS = 600.0
_OUTAGE_FRACTION = 0.002


class Meters:
    """Every meter of a plant: racks, supplies, loops, links, and one for the hottest GPU of each node."""

    def __init__(self, truth: Truth, plant: Plant, seed: int, exact: bool) -> None:
        self._truth, self._plant = truth, plant
        self._noise = None if exact else Random(seed)  # noqa: S311 - runs must repeat
        self._outages = None if exact else _Outages(plant, seed, truth.now)
        self._late_seconds = 0.0 if exact else _LATE_SECONDS
        rented = {number for number, site in plant.site_of_resource.items() if site in plant.clouds}
        self._quantities = [  # nobody meters what is rented
            None if number in rented else _WATTS_OF.get(resource.kind)
            for number, resource in enumerate(plant.resources)
        ]
        self._carriers = [
            truth.carrier(number) if quantity else None for number, quantity in enumerate(self._quantities)
        ]
        self._bands_watts = [_CAP_FRACTION * resource.cap for resource in plant.resources]
        self._gpu_bands_watts = [
            _GPU_LIMIT_FRACTION * spot.node.device.limit_watts
            if spot.node.device and spot.node.gpus and spot.site.cloud is None
            else None
            for spot in plant.spots
        ]
        self._subjects = [_subject(plant, (_NODE, node)) for node in range(len(plant.spots))]
        # As last told, without the noise; nan: not told.
        self._watts = [math.nan] * len(plant.resources)
        self._die_celsius = [math.nan] * len(plant.spots)
        self._gpu_watts = [math.nan] * len(plant.spots)
        self._caps_watts = [resource.cap for resource in plant.resources]
        self._others: dict[tuple[int, str], float] = {}  # what loops and links have said
        self._hall_celsius: dict[int, float] = {}  # a loop's coolant when all its nodes were last looked at
        self._full: dict[int, None] = {}
        self._urgent: set[int] = set()
        self._changed: deque[tuple[float, Touched]] = deque()
        self._again: deque[tuple[float, Touched]] = deque()
        self._again_at: list[float] = [-math.inf] * len(plant.spots)
        self._loops_again_at: dict[int, float] = {}
        self._again_seconds = max(truth.settling_seconds(loop) for loop in plant.loop_of_resource)
        self._take_touched(-math.inf)

    def read(self, at: float) -> list[Told]:
        """What moved since it was last told."""
        told: list[Told] = []
        self._take_touched(at)
        resources, nodes = self._due(at)
        if self._outages is not None:
            for meter in self._outages.switch(at):
                self._switch(meter, resources, nodes, told)
        for number in self._truth.uncalm_loops():
            resources[number] = None
            nodes |= dict.fromkeys(self._truth.nodes_on(number))
        for number in resources:
            self._look_at_resource(number, nodes, at, told)
        for node in nodes:
            self._look_at_node(node, at, told)
        return told

    def urgent(self) -> bool:
        """Something is nearly full, or heat holds a node back or soon will."""
        return bool(self._urgent or self._truth.uncalm_loops())

    def next_look_at(self, at: float) -> float:
        """When the next look makes sense if nothing else happens; infinite in calm conditions.

        What is nearly full and stays as it is needs no second look; what is over its cap does.
        """
        if self._truth.uncalm_loops():
            return at + _URGENT_SECONDS
        if self._urgent:
            if self._changed:
                return max(at, self._changed[-1][0])
            carriers = [self._carriers[number] for number in self._urgent]
            if any(carrier is not None and carrier.watts > carrier.cap_watts for carrier in carriers):
                return at + _URGENT_SECONDS
        return math.inf

    def next_due_at(self) -> float:
        """When what changed will have more to say; it can wait for the next look."""
        heads = [queue[0][0] for queue in (self._changed, self._again) if queue]
        return min(heads, default=math.inf)

    def _take_touched(self, at: float) -> None:
        touched = self._truth.drain_touched()
        if not touched.resources and not touched.nodes:
            return
        self._changed.append((at + self._late_seconds, touched))
        carriers, urgent = self._carriers, self._urgent
        for number in touched.resources:
            carrier = carriers[number]
            if carrier is None:
                continue
            if carrier.watts > _URGENT_FRACTION * carrier.cap_watts > 0.0:
                urgent.add(number)
            elif urgent:
                urgent.discard(number)

    def _due(self, at: float) -> tuple[dict[int, None], dict[int, None]]:
        """Resources and nodes to look at now. Temperatures move on after a change, so they have two turns."""
        resources, nodes = dict(self._full), dict[int, None]()
        while self._changed and self._changed[0][0] <= at:
            _, touched = self._changed.popleft()
            resources |= touched.resources
            nodes |= touched.nodes
            self._look_again(at + self._again_seconds, touched)
        again_at, loops_again_at = self._again_at, self._loops_again_at
        while self._again and self._again[0][0] <= at:
            due_at, touched = self._again.popleft()
            # Only what was not touched since.
            nodes |= {node: None for node in touched.nodes if again_at[node] == due_at}
            resources |= {loop: None for loop in touched.resources if loops_again_at.get(loop) == due_at}
        return resources, nodes

    def _look_again(self, at: float, touched: Touched) -> None:
        for node in touched.nodes:
            self._again_at[node] = at
        for number in touched.resources:
            if number in self._plant.loop_of_resource:
                self._loops_again_at[number] = at
        self._again.append((at, touched))

    def _look_at_resource(self, number: int, nodes: dict[int, None], at: float, told: list[Told]) -> None:
        carrier, quantity = self._carriers[number], self._quantities[number]
        if carrier is None or quantity is None:
            if self._plant.kinds[number] is ResourceKind.LINK:
                self._look_at_link(number, told)
            return
        watts, cap_watts = carrier.watts, carrier.cap_watts
        if number in self._plant.loop_of_resource:
            self._look_at_loop(number, nodes, at, told)
        elif int(cap_watts) != self._caps_watts[number]:
            self._caps_watts[number] = int(cap_watts)
            told.append((self._plant.resources[number].name, "cap_watts", float(int(cap_watts))))
        is_full = watts > _FULL_FRACTION * cap_watts > 0.0
        if is_full:
            self._full[number] = None
        elif self._full:
            self._full.pop(number, None)
        moved = not abs(watts - self._watts[number]) <= self._bands_watts[number]
        if (moved or is_full) and not self._is_out((_RESOURCE, number)):
            self._watts[number] = watts
            told.append((self._plant.resources[number].name, quantity, self._read_off(quantity, watts)))

    def _look_at_link(self, number: int, told: list[Told]) -> None:
        """A link and each class of its traffic, which are numbered apart and change together."""
        resource = self._plant.resources[number]
        name = resource.name.rsplit(":", 1)[0]
        left = self._truth.link_fraction(name)
        if self._others.get((number, "fraction"), 1.0) != left:
            self._others[number, "fraction"] = left
            whole = next(link for link in self._plant.facility.links if link.name == name)
            told.append((name, "cap_bits_per_second", whole.bits_per_second * left))
            told.append((resource.name, "cap_bits_per_second", resource.cap * left))

    def _look_at_loop(self, number: int, nodes: dict[int, None], at: float, told: list[Told]) -> None:
        """Where it got warmer or cooler for all, all nodes of the loop are looked at too."""
        truth, celsius = self._truth, self._truth.coolant_celsius(number, at)
        self._tell(number, "coolant_celsius", celsius, _COOLANT_KELVIN, told)
        self._tell(number, "supply_celsius", truth.supply_celsius(number), 0.0, told)
        self._tell(number, "flow_fraction", truth.flow_fraction(number), 0.0, told)
        if abs(celsius - self._hall_celsius.setdefault(number, celsius)) > _HALL_KELVIN:
            self._hall_celsius[number] = celsius
            nodes |= dict.fromkeys(truth.nodes_on(number))

    def _switch(
        self, meter: _Meter, resources: dict[int, None], nodes: dict[int, None], told: list[Told]
    ) -> None:
        """A meter fell silent, which is told once, or speaks again, which tells all it has to say."""
        where, number = meter
        if self._is_out(meter):
            subject = _subject(self._plant, meter)
            told += [(subject, quantity, None) for quantity in _measured_by(self._plant, meter)]
        elif where == _NODE:
            nodes[number] = None
            self._die_celsius[number] = self._gpu_watts[number] = math.nan
        else:
            resources[number] = None
            self._watts[number] = math.nan
            self._others.pop((number, "coolant_celsius"), None)

    def _is_out(self, meter: _Meter) -> bool:
        return self._outages is not None and meter in self._outages.out

    def _look_at_node(self, node: int, at: float, told: list[Told]) -> None:
        band_watts = self._gpu_bands_watts[node]
        if band_watts is None or self._is_out((_NODE, node)):
            return
        celsius, watts = self._truth.node_celsius(node, at), self._truth.node_gpu_watts(node)
        if not abs(celsius - self._die_celsius[node]) <= _DIE_KELVIN:
            self._die_celsius[node] = celsius
            told.append((self._subjects[node], "gpu_celsius", self._read_off("gpu_celsius", celsius)))
        if not abs(watts - self._gpu_watts[node]) <= band_watts:
            self._gpu_watts[node] = watts
            told.append((self._subjects[node], "gpu_watts", self._read_off("gpu_watts", watts)))

    def _tell(self, number: int, quantity: str, value: float, band: float, told: list[Told]) -> None:
        """What else is said of a resource, where it moved by more than a band."""
        if abs(value - self._others.get((number, quantity), math.inf)) <= band:
            return
        if quantity not in _STATED and self._is_out((_RESOURCE, number)):
            return
        self._others[number, quantity] = value
        told.append((self._plant.resources[number].name, quantity, self._read_off(quantity, value)))

    def _read_off(self, quantity: str, value: float) -> float:
        if self._noise is None or quantity in _STATED:
            return value
        if quantity.endswith("celsius"):
            return value + self._noise.gauss(0.0, _CELSIUS_NOISE_KELVIN)
        return value * (1.0 + self._noise.gauss(0.0, _WATTS_NOISE_FRACTION))


class _Outages:
    """When each meter is silent: by lot of its own name, about one hour in five hundred."""

    def __init__(self, plant: Plant, seed: int, at: float) -> None:
        self.out: set[_Meter] = set()
        self._plant, self._seed = plant, seed
        meters = [
            *(
                (_RESOURCE, number)
                for number, each in enumerate(plant.resources)
                if each.kind in _WATTS_OF and plant.site_of_resource[number] not in plant.clouds
            ),
            *(
                (_NODE, number)
                for number, spot in enumerate(plant.spots)
                if spot.node.device and spot.node.gpus and spot.site.cloud is None
            ),
        ]
        self._counts = dict.fromkeys(meters, 0)
        self._heap = [(self._falls_silent_at(meter, at), meter) for meter in meters]
        heapify(self._heap)

    def switch(self, at: float) -> list[_Meter]:
        """Meters that fell silent or speak again since the last look; what is over already is not told."""
        switched: list[_Meter] = []
        while self._heap and self._heap[0][0] <= at:
            due_at, meter = heappop(self._heap)
            ends_at = due_at + _OUTAGE_SECONDS
            if meter in self.out:
                self.out.discard(meter)
                switched.append(meter)
                heappush(self._heap, (self._falls_silent_at(meter, due_at), meter))
            elif ends_at <= at:
                heappush(self._heap, (self._falls_silent_at(meter, ends_at), meter))
            else:
                self.out.add(meter)
                switched.append(meter)
                heappush(self._heap, (ends_at, meter))
        return switched

    def _falls_silent_at(self, meter: _Meter, at: float) -> float:
        self._counts[meter] += 1
        lot = draw_lot(self._seed, f"outage/{_subject(self._plant, meter)}/{self._counts[meter]}")
        return at - _OUTAGE_SECONDS / _OUTAGE_FRACTION * math.log1p(-0.5 * (lot + 1.0))


def _subject(plant: Plant, meter: _Meter) -> str:
    """A node's hottest GPU speaks for the node."""
    where, number = meter
    return plant.resources[number].name if where == _RESOURCE else f"{plant.spots[number].node.name}/gpu0"


def _measured_by(plant: Plant, meter: _Meter) -> tuple[str, ...]:
    where, number = meter
    if where == _NODE:
        return "gpu_celsius", "gpu_watts"
    kind = plant.resources[number].kind
    return (_WATTS_OF[kind], "coolant_celsius") if kind is ResourceKind.LOOP else (_WATTS_OF[kind],)
