"""Outages: when is each meter silent? By lot of its own name, about one hour in five hundred."""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush

from wattline.state import Plant, ResourceKind
from wattline.twin.truth.lots import draw_lot

Meter = tuple[str, int]  # at a resource or a node, with its number
RESOURCE, NODE = "resource", "node"

WATTS_OF = {
    ResourceKind.RACK: "rack_watts",
    ResourceKind.SUPPLY: "supply_watts",
    ResourceKind.LOOP: "loop_heat_watts",
}
# Assumed.
_OUTAGE_SECONDS = 600.0
_OUTAGE_FRACTION = 0.002


class Outages:
    """Which meters are silent now, and who falls silent or speaks again next."""

    def __init__(self, plant: Plant, seed: int, at: float) -> None:
        self.out: set[Meter] = set()
        self._plant, self._seed = plant, seed
        meters = [
            *(
                (RESOURCE, number)
                for number, each in enumerate(plant.resources)
                if each.kind in WATTS_OF and plant.site_of_resource[number] not in plant.clouds
            ),
            *(
                (NODE, number)
                for number, spot in enumerate(plant.spots)
                if spot.node.device and spot.node.gpus and spot.site.cloud is None
            ),
        ]
        self._counts = dict.fromkeys(meters, 0)
        self._heap = [(self._falls_silent_at(meter, at), meter) for meter in meters]
        heapify(self._heap)
        self.next_at = self._heap[0][0] if self._heap else math.inf  # when something switches next

    def switch(self, at: float) -> list[Meter]:
        """Meters that fell silent or speak again since the last look; what is over already is not told."""
        switched: list[Meter] = []
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
        self.next_at = self._heap[0][0] if self._heap else math.inf
        return switched

    def _falls_silent_at(self, meter: Meter, at: float) -> float:
        self._counts[meter] += 1
        lot = draw_lot(self._seed, f"outage/{subject_of(self._plant, meter)}/{self._counts[meter]}")
        return at - _OUTAGE_SECONDS / _OUTAGE_FRACTION * math.log1p(-0.5 * (lot + 1.0))


def subject_of(plant: Plant, meter: Meter) -> str:
    """A node's hottest GPU speaks for the node."""
    where, number = meter
    return plant.resources[number].name if where == RESOURCE else f"{plant.spots[number].node.name}/gpu0"


def measured_by(plant: Plant, meter: Meter) -> tuple[str, ...]:
    where, number = meter
    if where == NODE:
        return "gpu_celsius", "gpu_watts"
    kind = plant.resources[number].kind
    return (WATTS_OF[kind], "coolant_celsius") if kind is ResourceKind.LOOP else (WATTS_OF[kind],)
