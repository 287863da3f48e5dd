"""Spreading: how fast is a job on the nodes it was given, before power and heat have their say?"""

from __future__ import annotations

from typing import Protocol

from wattline.physics.synchronise import predict_sync_speed
from wattline.state import Plant
from wattline.twin.workload import Arrival


class Rates(Protocol):
    """Where it is measured how fast an application trains on the GPUs it was given."""

    def rate(self, application: str, batch_size: int, placement: tuple[int, ...]) -> float: ...


def spread_speed(
    plant: Plant, rates: Rates | None, arrival: Arrival, nodes: tuple[tuple[int, int], ...]
) -> float:
    """Seconds of its work for each second there: as measured, or by its width and how far apart nodes are."""
    if rates is not None and arrival.application and arrival.batch_size is not None:
        placement = tuple([gpus for _, gpus in nodes])
        return rates.rate(arrival.application, arrival.batch_size, placement) * arrival.work_seconds
    request = arrival.request
    width = 1.0 if request.elastic is None else request.speed_at(sum([gpus for _, gpus in nodes]))
    if len(nodes) == 1:
        return width
    racks = [plant.spots[node].rack for node, _ in nodes]
    return width * predict_sync_speed(
        len(nodes), {rack.switch for rack in racks}, {rack.row for rack in racks}
    )
