"""What a job takes of each finite thing, in whole units: sums of integers never drift.

Claims are above idle: what a node draws without work is in the resource already. Watts are rounded up.
"""

from __future__ import annotations

import math

import msgspec

from wattline.facility import Device, TrafficClass
from wattline.state.action import Place
from wattline.state.plant import Plant, Taking
from wattline.state.request import JobRequest

_MOST_TAKINGS = 500_000


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    nodes: tuple[tuple[int, int], ...]  # node number, GPUs
    millicpus: int  # of the first node
    amounts: tuple[tuple[int, int], ...]  # resource number, watts or bits or bytes per second
    gpu_watts: float  # of its hungriest GPU: what heats the die


def peak_watts_on(request: JobRequest, plant: Plant, node: int, gpus: int, power_fraction: float) -> float:
    """The most this job may draw through these GPUs of one node, idle draw included."""
    device = plant.spots[node].node.device
    if device is None or gpus == 0:
        return (request.peak_watts or 0.0) if request.gpus == 0 else 0.0
    return gpus * gpu_peak_watts(device, request.each_watts, power_fraction)


def gpu_peak_watts(device: Device, each_watts: float, power_fraction: float) -> float:
    """The most one GPU draws that is asked to draw no more than so much, idle draw included."""
    limit = max(device.least_limit_watts, power_fraction * device.limit_watts)
    return max(min(limit, each_watts), device.idle_watts)


def peak_watts_at(request: JobRequest, place: Place, plant: Plant, power_fraction: float) -> float:
    """The most it may draw at a place."""
    numbers = plant.node_number
    return sum(
        [peak_watts_on(request, plant, numbers[name], gpus, power_fraction) for name, gpus in place.nodes]
    )


def taking_of(request: JobRequest, plant: Plant, node: int, gpus: int, power_fraction: float = 1.0) -> Taking:
    """The same at every node of a bay, so it is worked out once."""
    key = (plant.spots[node].bay, gpus, request.gpus, request.peak_watts, power_fraction)
    known = plant.takings.get(key)
    if known is None:
        if len(plant.takings) >= _MOST_TAKINGS:
            plant.takings.clear()
        known = plant.takings[key] = _take(request, plant, node, gpus, power_fraction)
    return known


def _take(request: JobRequest, plant: Plant, node: int, gpus: int, power_fraction: float) -> Taking:
    spot = plant.spots[node]
    peak = peak_watts_on(request, plant, node, gpus, power_fraction)
    idle = gpus * spot.node.device.idle_watts if spot.node.device else 0.0
    above = max(0.0, peak - idle)
    amounts = {resource: math.ceil(above * share) for resource, share in spot.power}
    loop_amount = math.ceil(above)
    amounts[spot.loop_resource] = amounts.get(spot.loop_resource, 0) + loop_amount
    return Taking(tuple(sorted(amounts.items())), loop_amount, peak / gpus if gpus else 0.0)


def claim_of(request: JobRequest, place: Place, plant: Plant, power_fraction: float = 1.0) -> Claim:
    """Derived, never stored: the journal keeps places, and a claim follows from its place.

    Whoever starts is judged, laid over and held: the last claim is asked for again and again.
    """
    known = plant.last_claim
    if known is not None and known[0] is request and known[1] is place and known[2] == power_fraction:
        return known[3]
    claim = _claim(request, place, plant, power_fraction)
    plant.last_claim = (request, place, power_fraction, claim)
    return claim


def _claim(request: JobRequest, place: Place, plant: Plant, power_fraction: float) -> Claim:
    numbers = plant.node_number
    nodes = tuple([(numbers[name], gpus) for name, gpus in place.nodes])
    millicpus = math.ceil(1000 * request.cpus)
    saving = saving_of(request, place.site, plant)
    if len(nodes) > 1:
        amounts, hungriest = _add_up(request, plant, nodes, power_fraction)
    else:
        taking = taking_of(request, plant, *nodes[0], power_fraction)
        hungriest = taking.gpu_watts
        if not saving:
            return Claim(nodes=nodes, millicpus=millicpus, amounts=taking.amounts, gpu_watts=hungriest)
        amounts = dict(taking.amounts)
    for resource, amount in saving:
        amounts[resource] = amounts.get(resource, 0) + amount
    return Claim(
        nodes=nodes, millicpus=millicpus, amounts=tuple(sorted(amounts.items())), gpu_watts=hungriest
    )


def _add_up(
    request: JobRequest, plant: Plant, nodes: tuple[tuple[int, int], ...], power_fraction: float
) -> tuple[dict[int, int], float]:
    """What several nodes take together, and the watts of the hungriest GPU.

    As `taking_of` of each, which would keep one for each rack of each gang that is tried: nodes of one zone
    take the same of all above their racks.
    """
    spots, bays, ceil = plant.spots, plant.bays, math.ceil
    amounts: dict[int, int] = {}
    alike: dict[tuple[int, int, float], int] = {}  # by zone, GPUs of a node and their watts: so many nodes
    each: dict[int, tuple[float, int]] = {}  # by GPUs of a node of the device below, its watts
    device, hungriest = None, 0.0
    for node, gpus in nodes:
        spot = spots[node]
        if spot.node.device is not device:
            device = spot.node.device
            each.clear()
        known = each.get(gpus)
        if known is None:
            peak = peak_watts_on(request, plant, node, gpus, power_fraction)
            above = max(0.0, peak - (gpus * device.idle_watts if device else 0.0))
            known = each[gpus] = (above, ceil(above))
            hungriest = max(hungriest, peak / gpus if gpus else 0.0)
        above, whole = known
        bay = bays[spot.bay]
        rack, key = bay.rack_resource, (bay.zone, gpus, above)
        amounts[rack] = amounts.get(rack, 0) + whole
        alike[key] = alike.get(key, 0) + 1
    for (zone, _, above), count in alike.items():
        for resource, share in plant.zones[zone].above:
            amounts[resource] = amounts.get(resource, 0) + count * ceil(above * share)
    return amounts, hungriest


def saving_of(request: JobRequest, site: str, plant: Plant) -> list[tuple[int, int]]:
    """What a job's checkpoints take of storage and links, wherever at a site it runs."""
    if not request.checkpoint_bits_per_second:
        return []
    saving = math.ceil(request.checkpoint_bits_per_second / 8)
    amounts = [(plant.storage_of_site[site], saving)]
    for other in request.replicate_to:
        link = plant.link_resource(site, other, TrafficClass.CHECKPOINT)
        if link is not None:
            amounts.append((link, math.ceil(request.checkpoint_bits_per_second)))
    return amounts
