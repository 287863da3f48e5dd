"""Changes: what could be asked for instead of what a job asks for, and how is each told?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from wattline.facility import Device
from wattline.physics import predict_speed
from wattline.policy.explaining.mildest import LOWEST_CAP
from wattline.policy.giving_way.capping import capping_sites
from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.offering import GPUS, Option, costs_more_usd, named_gpus, with_gpus
from wattline.spec.policy import Policy
from wattline.state import JobRequest, Place, Snapshot, Usage
from wattline.units import format_share

replace = msgspec.structs.replace

_GPU, _PEAK_POWER, _RESIDENCY = "resources.gpu", "constraints.peak_power", "constraints.residency"
# Who waits for less power is offered this share of what it asks for: it loses little speed by that.
_LESS = 0.7


@dataclass(frozen=True, slots=True)
class Change:
    """What is asked for instead, and how that is told once it has a place."""

    field: str  # of the phase, that says something else
    request: JobRequest
    tell: Callable[[Place], Option]


def sooner_changes(
    snapshot: Snapshot, policy: Policy, request: JobRequest, base: Usage | None
) -> Iterator[Change]:
    """What may find room sooner than the job as it is: less power, fewer GPUs, other GPUs, other regions."""
    capped = _with_less_power(snapshot, policy, request, base)
    if capped is not None:
        yield capped
    if request.gpus > 1 and request.elastic is None:
        yield with_fewer_gpus(snapshot, request, request.gpus // 2)
    if request.gpu_models:
        yield with_any_gpu(snapshot, request, base)
    if request.residency:
        yield in_any_region(snapshot, request, base)


def with_any_gpu(snapshot: Snapshot, request: JobRequest, base: Usage | None) -> Change:
    other = replace(request, gpu_models=())

    def tell(place: Place) -> Option:
        device = device_at(snapshot, place)
        name = device.name if device else "no GPU"
        return Option(
            change=f"also accept {name}, at {place.site}",
            starts_at=snapshot.at,
            cost_delta_usd=costs_more_usd(snapshot, other, place, base),
            brief=f"if it accepts {name} too",
            fields={_GPU: (*request.gpu_models, name)},
        )

    return Change(_GPU, other, tell)


def in_any_region(snapshot: Snapshot, request: JobRequest, base: Usage | None) -> Change:
    anywhere = replace(request, residency=())

    def tell(place: Place) -> Option:
        site = snapshot.plant.sites[place.site]
        return Option(
            change=f"let its data go to {site.region}, at {site.name}",
            starts_at=snapshot.at,
            cost_delta_usd=costs_more_usd(snapshot, anywhere, place, base),
            brief=f"in {site.name}",
            fields={_RESIDENCY: (*request.residency, site.region)},
        )

    return Change(_RESIDENCY, anywhere, tell)


def with_fewer_gpus(snapshot: Snapshot, request: JobRequest, gpus: int) -> Change:
    fewer = replace(named_gpus(gpus), starts_at=snapshot.at)
    return Change(GPUS, with_gpus(request, gpus), lambda _: fewer)


def under_cap(snapshot: Snapshot, request: JobRequest, base: Usage | None, each_watts: float) -> Change:
    """With so many watts for each GPU at most, as a document says it."""
    watts = math.floor(request.gpus * each_watts)

    def tell(place: Place) -> Option:
        device = device_at(snapshot, place)
        fraction = 1.0 if device is None else min(1.0, round(each_watts / device.limit_watts, 2))
        speed, share = predict_speed(fraction), format_share(fraction)
        return Option(
            change=f"cap its power at {share} (speed {format_share(speed)}), at {place.site}",
            starts_at=snapshot.at,
            cost_delta_usd=costs_more_usd(snapshot, request, place, base, fraction, speed),
            brief=f"if capped to {share}",
            fields={_PEAK_POWER: f"{watts}W"},
        )

    return Change(_PEAK_POWER, replace(request, peak_watts=float(watts)), tell)


def _with_less_power(
    snapshot: Snapshot, policy: Policy, request: JobRequest, base: Usage | None
) -> Change | None:
    plant = snapshot.plant
    if not request.gpus or capping_sites(plant) is not None:
        return None  # it might be put where nothing caps it
    firsts = [plant.bays_of_pool[pool][0] for _, pool in pools_for(plant, policy, request)]
    devices = [plant.spots[plant.bays[bay].first].node.device for bay in firsts]
    limit_watts = max([device.limit_watts for device in devices if device is not None], default=0.0)
    asked_watts = min(request.each_watts, limit_watts)
    each_watts = max(_LESS * asked_watts, LOWEST_CAP / 100.0 * limit_watts)
    return under_cap(snapshot, request, base, each_watts) if each_watts < asked_watts else None


def device_at(snapshot: Snapshot, place: Place) -> Device | None:
    """What a job's GPUs are at a place."""
    return snapshot.plant.spots[snapshot.plant.node_number[place.nodes[0][0]]].node.device
