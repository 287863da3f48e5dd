"""Gauges: where does each meter look, and what did it last tell, without the noise? nan: nothing yet."""

from __future__ import annotations

from math import nan

from wattline.state import Plant, ResourceKind
from wattline.twin.outages import NODE, WATTS_OF, subject_of
from wattline.twin.truth import Carrier, TrueLoop, TrueNode, Truth

# What counts as moved.
_CAP_FRACTION = 0.01
_GPU_LIMIT_FRACTION = 0.02


class Gauge:
    """Of a rack or a supply; the watts of a loop are the heat that it takes."""

    __slots__ = ("band_watts", "cap_watts", "carrier", "is_out", "name", "quantity", "watts")

    def __init__(self, name: str, kind: ResourceKind, carrier: Carrier, cap_watts: int) -> None:
        self.name, self.quantity = name, WATTS_OF[kind]
        self.carrier = carrier
        self.band_watts = _CAP_FRACTION * cap_watts
        self.cap_watts = cap_watts
        self.watts = nan
        self.is_out = False  # it cannot be read

    def forget(self) -> None:
        """Tell anew."""
        self.watts = nan


class LoopGauge(Gauge):
    __slots__ = ("coolant_celsius", "flow_fraction", "hall_celsius", "loop", "supply_celsius")

    def __init__(self, name: str, kind: ResourceKind, loop: TrueLoop, cap_watts: int) -> None:
        super().__init__(name, kind, loop, cap_watts)
        self.loop = loop
        self.coolant_celsius = self.supply_celsius = self.flow_fraction = nan
        self.hall_celsius: float | None = None  # its coolant when all its nodes were last looked at

    def forget(self) -> None:
        super().forget()
        self.coolant_celsius = nan


class NodeGauge:
    """Of a node's hottest GPU."""

    __slots__ = ("band_watts", "die_celsius", "gpu_watts", "is_out", "name", "node")

    def __init__(self, name: str, node: TrueNode, limit_watts: float) -> None:
        self.name, self.node = name, node
        self.band_watts = _GPU_LIMIT_FRACTION * limit_watts
        self.die_celsius = self.gpu_watts = nan
        self.is_out = False

    def forget(self) -> None:
        self.die_celsius = self.gpu_watts = nan


def gauges_of(plant: Plant, truth: Truth) -> list[Gauge | None]:
    """By resource; links have none, and nobody meters what is rented."""
    gauges: list[Gauge | None] = []
    for number, resource in enumerate(plant.resources):
        name, kind, cap_watts = resource.name, resource.kind, resource.cap
        if kind not in WATTS_OF or plant.site_of_resource[number] in plant.clouds:
            gauges.append(None)
        elif number in plant.loop_of_resource:
            gauges.append(LoopGauge(name, kind, truth.loop(number), cap_watts))
        else:
            gauges.append(Gauge(name, kind, truth.carrier(number), cap_watts))
    return gauges


def node_gauges_of(plant: Plant, truth: Truth) -> list[NodeGauge | None]:
    """By node; those without GPUs have none."""
    return [
        NodeGauge(subject_of(plant, (NODE, number)), truth.node(number), spot.node.device.limit_watts)
        if spot.node.device and spot.node.gpus and spot.site.cloud is None
        else None
        for number, spot in enumerate(plant.spots)
    ]
