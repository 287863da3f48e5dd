"""What a job takes of each finite thing, in whole units: sums of integers never drift.

Claims are above idle: what a node draws without work is in the resource already. Watts are rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wattline.facility import TrafficClass
from wattline.state.action import Place
from wattline.state.plant import Plant
from wattline.state.request import JobRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    nodes: tuple[tuple[int, int], ...]  # node number, GPUs
    millicpus: int  # of the first node
    amounts: tuple[tuple[int, int], ...]  # resource number, watts or bits or bytes per second
    gpu_watts: float  # of its hungriest GPU: what heats the die


def peak_watts_on(request: JobRequest, plant: Plant, node: int, gpus: int, power_fraction: float) -> float:
    """The most this job may draw through these GPUs of one node, idle draw included."""
    device = plant.spots[node].node.device
    if device is None or gpus == 0:
        return (request.peak_watts or 0.0) if request.gpus == 0 else 0.0
    limit = max(device.least_limit_watts, power_fraction * device.limit_watts)
    if request.peak_watts is not None:
        limit = min(limit, request.peak_watts / request.gpus)
    return gpus * max(limit, device.idle_watts)


def claim_of(request: JobRequest, place: Place, plant: Plant, power_fraction: float = 1.0) -> Claim:
    """Derived, never stored: the journal keeps places, and a claim follows from its place."""
    nodes = tuple((plant.node_number[name], gpus) for name, gpus in place.nodes)
    amounts: dict[int, int] = {}
    hungriest = 0.0
    for node, gpus in nodes:
        spot = plant.spots[node]
        peak = peak_watts_on(request, plant, node, gpus, power_fraction)
        idle = gpus * spot.node.device.idle_watts if spot.node.device else 0.0
        if gpus:
            hungriest = max(hungriest, peak / gpus)
        above = max(0.0, peak - idle)
        for resource, share in spot.power:
            amounts[resource] = amounts.get(resource, 0) + math.ceil(above * share)
        amounts[spot.loop_resource] = amounts.get(spot.loop_resource, 0) + math.ceil(above)
    saving = math.ceil(request.checkpoint_bits_per_second / 8)
    if saving:
        amounts[plant.storage_of_site[place.site]] = saving
        for other in request.replicate_to:
            link = plant.link_resource(place.site, other, TrafficClass.CHECKPOINT)
            if link is not None:
                amounts[link] = amounts.get(link, 0) + math.ceil(request.checkpoint_bits_per_second)
    return Claim(
        nodes=nodes,
        millicpus=math.ceil(1000 * request.cpus),
        amounts=tuple(sorted(amounts.items())),
        gpu_watts=hungriest,
    )
