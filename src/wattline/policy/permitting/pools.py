"""Pools: which of them may take a job, and what does an hour there cost?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from wattline.policy.permitting.permission import allowed_models, allowed_regions
from wattline.spec.policy import Policy
from wattline.state import (
    JobRequest,
    Place,
    Plant,
    Snapshot,
    Usage,
    compared_hours,
    peak_watts_at,
    peak_watts_on,
    usage_of,
)
from wattline.state.market import egress_usd


def pools_for(
    plant: Plant,
    policy: Policy,
    request: JobRequest,
    sites: Collection[str] | None = None,
    power_fraction: float = 1.0,
) -> Sequence[tuple[float, int]]:
    """Pools of our own that may take a job, cheapest first, with the least that an hour there scores."""
    weights, models = policy.weights, allowed_models(request, policy)
    found = _price_pools(
        plant,
        (weights.cost, weights.carbon),
        request.gpus,
        request.peak_watts,
        power_fraction,
        models,
        allowed_regions(request, policy),
    )
    return found if sites is None else [(cost, pool) for cost, pool in found if plant.pools[pool][0] in sites]


@lru_cache(maxsize=32_768)
def _price_pools(
    plant: Plant,
    weights: tuple[float, float],
    gpus: int,
    peak_watts: float | None,
    power_fraction: float,
    models: frozenset[str] | None,
    regions: tuple[str, ...] | None,
) -> tuple[tuple[float, int], ...]:
    asked = JobRequest(job="", run="", gpus=gpus, peak_watts=peak_watts)
    found = []
    for pool, (site, device) in enumerate(plant.pools):
        if site in plant.clouds:  # rented by `bursting` alone
            continue
        if regions is not None and plant.sites[site].region not in regions:
            continue
        if gpus and (not device or (models is not None and device not in models)):
            continue
        node = plant.bays[plant.bays_of_pool[pool][0]].first
        place = Place(site, ((plant.spots[node].node.name, gpus),))
        watts = peak_watts_on(asked, plant, node, gpus, power_fraction)
        usage = usage_of(float(gpus), watts / 1000.0, place, plant)
        found.append((weights[0] * usage.usd + weights[1] * usage.kg_co2e, pool))
    return tuple(sorted(found))


def most_used(request: JobRequest, place: Place, plant: Plant, power_fraction: float = 1.0) -> Usage:
    """What the job would use at a place, if it ran as long and as hard as it may."""
    hours = compared_hours(request)
    peak_watts = peak_watts_at(request, place, plant, power_fraction)
    return usage_of(request.gpus * hours, peak_watts * hours / 1000.0, place, plant)


def transfer_usd(snapshot: Snapshot, from_site: str, to_site: str, size_bytes: float = 1e9) -> float:
    """What moving a checkpoint costs; a gigabyte where its size is not known yet."""
    return egress_usd(snapshot.plant, from_site, to_site, size_bytes)
