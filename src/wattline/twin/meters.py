"""Meters: what do the facility's meters say of the truth, and what has changed since they last spoke?

Like plant meters they report by change of value. Unless they are exact they are noisy, a few seconds late,
and now and then one of them is silent for a while.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from random import Random

from wattline.state import Plant, ResourceKind
from wattline.twin.gauges import LoopGauge, gauges_of, node_gauges_of
from wattline.twin.outages import NODE, Meter, Outages, measured_by, subject_of
from wattline.twin.truth import Touched, Truth

Told = tuple[str, str, float | None]  # subject, quantity, value; None: this meter cannot be read

_COOLANT_KELVIN = 0.5  # what counts as moved
_DIE_KELVIN = 1.0
_FULL_FRACTION = 0.95  # so full that every look is told
_URGENT_FRACTION = 0.97
_URGENT_SECONDS = 10.0
# A hall that warms by so much is noticed on all its nodes, touched or not.
_HALL_KELVIN = 2.0
# How far meters are from the truth; assumed.
_WATTS_NOISE_FRACTION = 0.005
_CELSIUS_NOISE_KELVIN = 0.3
_LATE_SECONDS = 3.0
_DRAWN_AT_ONCE = 256


class Meters:
    """Every meter of a plant: racks, supplies, loops, links, and one for the hottest GPU of each node."""

    def __init__(self, truth: Truth, plant: Plant, seed: int, exact: bool) -> None:
        self._truth, self._plant = truth, plant
        self._noise = None if exact else _draw_noise(seed)
        self._outages = None if exact else Outages(plant, seed, truth.now)
        self._late_seconds = 0.0 if exact else _LATE_SECONDS
        self._gauges = gauges_of(plant, truth)
        self._carriers = [gauge.carrier if gauge is not None else None for gauge in self._gauges]
        self._node_gauges = node_gauges_of(plant, truth)
        self._link_fractions: dict[int, float] = {}
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
        if self._outages is not None and self._outages.next_at <= at:
            for meter in self._outages.switch(at):
                self._switch(meter, resources, nodes, told)
        for number in self._truth.uncalm_loops():
            resources[number] = None
            nodes.update(dict.fromkeys(self._truth.nodes_on(number)))
        if resources:
            self._look_at_resources(resources, nodes, at, told)
        if nodes:
            self._look_at_nodes(nodes, at, told)
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
            gauges = [self._gauges[number] for number in self._urgent]
            if any(gauge is not None and gauge.carrier.watts > gauge.carrier.cap_watts for gauge in gauges):
                return at + _URGENT_SECONDS
        return math.inf

    def next_due_at(self) -> float:
        """When what changed will have more to say; it can wait for the next look."""
        heads = [queue[0][0] for queue in (self._changed, self._again) if queue]
        return min(heads, default=math.inf)

    def _take_touched(self, at: float) -> None:
        touched = self._truth.drain_touched()
        if not touched.resources:  # no node changes without what carries it
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
        resources: dict[int, None] = self._full.copy()
        nodes: dict[int, None] = {}
        changed, again = self._changed, self._again
        while changed and changed[0][0] <= at:
            touched = changed.popleft()[1]
            resources.update(touched.resources)
            nodes.update(touched.nodes)
            self._look_again(at + self._again_seconds, touched)
        again_at, loops_again_at = self._again_at, self._loops_again_at
        while again and again[0][0] <= at:
            due_at, touched = again.popleft()
            for node in touched.nodes:  # only what was not touched since
                if again_at[node] == due_at:
                    nodes[node] = None
            for loop in touched.loops:
                if loops_again_at[loop] == due_at:
                    resources[loop] = None
        return resources, nodes

    def _look_again(self, at: float, touched: Touched) -> None:
        again_at, loops_again_at = self._again_at, self._loops_again_at
        for node in touched.nodes:
            again_at[node] = at
        for loop in touched.loops:
            loops_again_at[loop] = at
        self._again.append((at, touched))

    def _look_at_resources(
        self, resources: dict[int, None], nodes: dict[int, None], at: float, told: list[Told]
    ) -> None:
        gauges, full = self._gauges, self._full
        for number in resources:
            gauge = gauges[number]
            if gauge is None:
                if self._plant.kinds[number] is ResourceKind.LINK:
                    self._look_at_link(number, told)
                continue
            carrier = gauge.carrier
            watts, cap_watts = carrier.watts, carrier.cap_watts
            if type(gauge) is LoopGauge:
                self._look_at_loop(number, gauge, nodes, at, told)
            elif cap_watts != gauge.cap_watts and int(cap_watts) != gauge.cap_watts:
                gauge.cap_watts = int(cap_watts)
                told.append((gauge.name, "cap_watts", float(gauge.cap_watts)))
            is_full = watts > _FULL_FRACTION * cap_watts > 0.0
            if is_full:
                full[number] = None
            elif full:
                full.pop(number, None)
            if (is_full or not abs(watts - gauge.watts) <= gauge.band_watts) and not gauge.is_out:
                gauge.watts = watts
                told.append((gauge.name, gauge.quantity, self._read_watts(watts)))

    def _look_at_link(self, number: int, told: list[Told]) -> None:
        """A link and each class of its traffic, which are numbered apart and change together."""
        resource = self._plant.resources[number]
        name = resource.name.rsplit(":", 1)[0]
        left = self._truth.link_fraction(name)
        if self._link_fractions.get(number, 1.0) != left:
            self._link_fractions[number] = left
            whole = next(link for link in self._plant.facility.links if link.name == name)
            told.append((name, "cap_bits_per_second", whole.bits_per_second * left))
            told.append((resource.name, "cap_bits_per_second", resource.cap * left))

    def _look_at_loop(
        self, number: int, gauge: LoopGauge, nodes: dict[int, None], at: float, told: list[Told]
    ) -> None:
        """Where it got warmer or cooler for all, all nodes of the loop are looked at too."""
        loop = gauge.loop
        celsius = loop.coolant_after(at - loop.at)
        if not gauge.is_out and not abs(celsius - gauge.coolant_celsius) <= _COOLANT_KELVIN:
            gauge.coolant_celsius = celsius
            told.append((gauge.name, "coolant_celsius", self._read_celsius(celsius)))
        if loop.supply_celsius != gauge.supply_celsius:  # a set point, not measured, and so is the flow
            gauge.supply_celsius = loop.supply_celsius
            told.append((gauge.name, "supply_celsius", loop.supply_celsius))
        if loop.flow_fraction != gauge.flow_fraction:
            gauge.flow_fraction = loop.flow_fraction
            told.append((gauge.name, "flow_fraction", loop.flow_fraction))
        if gauge.hall_celsius is None:
            gauge.hall_celsius = celsius
        elif abs(celsius - gauge.hall_celsius) > _HALL_KELVIN:
            gauge.hall_celsius = celsius
            nodes.update(dict.fromkeys(self._truth.nodes_on(number)))

    def _switch(
        self, meter: Meter, resources: dict[int, None], nodes: dict[int, None], told: list[Told]
    ) -> None:
        """A meter fell silent, which is told once, or speaks again, which tells all it has to say."""
        where, number = meter
        gauge = self._node_gauges[number] if where == NODE else self._gauges[number]
        assert self._outages is not None
        assert gauge is not None
        gauge.is_out = meter in self._outages.out
        if gauge.is_out:
            subject = subject_of(self._plant, meter)
            told += [(subject, quantity, None) for quantity in measured_by(self._plant, meter)]
            return
        gauge.forget()
        (nodes if where == NODE else resources)[number] = None

    def _look_at_nodes(self, nodes: dict[int, None], at: float, told: list[Told]) -> None:
        gauges = self._node_gauges
        for number in nodes:
            gauge = gauges[number]
            if gauge is None or gauge.is_out:
                continue
            node = gauge.node
            celsius, watts = node.celsius_after(at), node.gpu_watts
            if not abs(celsius - gauge.die_celsius) <= _DIE_KELVIN:
                gauge.die_celsius = celsius
                told.append((gauge.name, "gpu_celsius", self._read_celsius(celsius)))
            if not abs(watts - gauge.gpu_watts) <= gauge.band_watts:
                gauge.gpu_watts = watts
                told.append((gauge.name, "gpu_watts", self._read_watts(watts)))

    def _read_celsius(self, celsius: float) -> float:
        return celsius if self._noise is None else celsius + next(self._noise) * _CELSIUS_NOISE_KELVIN

    def _read_watts(self, watts: float) -> float:
        return watts if self._noise is None else watts * (1.0 + next(self._noise) * _WATTS_NOISE_FRACTION)


def _draw_noise(seed: int) -> Iterator[float]:
    """Standard normal numbers without end, drawn many at a time: one by one costs twice as much."""
    gauss = Random(seed).gauss  # noqa: S311 - runs must repeat
    while True:
        yield from [gauss(0.0, 1.0) for _ in range(_DRAWN_AT_ONCE)]
