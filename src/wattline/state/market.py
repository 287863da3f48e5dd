"""Market: what does a GPU-hour of a cloud cost as far as was told, what does data cost that leaves a site,
and which machines were taken back?"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from wattline.state.account import NOTHING, promise_of
from wattline.state.action import Place
from wattline.state.ending import Usage
from wattline.state.job import Saved
from wattline.state.plant import Plant
from wattline.state.request import JobRequest

GPU_HOUR_PRICE = "usd_per_gpu_hour"  # read of a cloud's site, like any meter
_GIGABYTE = 1e9
_UNTOLD_BYTES = 1e9  # until somebody says how much a job brings back

Readings = Mapping[tuple[str, str], tuple[float, float]]  # subject, quantity → value, at


class Reclaim(msgspec.Struct, frozen=True):
    """The last word on a machine of a cloud."""

    heard_at: float
    leaves_at: float | None  # None: it was given back


def gpu_hour_usd(readings: Readings, plant: Plant, site: str) -> float:
    """What a cloud last said a GPU-hour costs; what the facility says where it said nothing."""
    told = readings.get((site, GPU_HOUR_PRICE))
    return plant.clouds[site].usd_per_gpu_hour if told is None else max(0.0, told[0])


def egress_usd(plant: Plant, from_site: str, to_site: str, size_bytes: float) -> float:
    """What moving so much costs: the link's price, both ways, and a cloud's for what leaves it."""
    if from_site == to_site or not from_site:
        return 0.0
    link, cloud = plant.links.get(frozenset((from_site, to_site))), plant.clouds.get(from_site)
    each = (link.usd_per_gigabyte if link is not None else 0.0) + (
        cloud.usd_per_gigabyte_out if cloud is not None else 0.0
    )
    return each * size_bytes / _GIGABYTE


def leaving_usd(plant: Plant, site: str, size_bytes: float) -> float:
    """What it costs that a job's results come back from a cloud, to whatever site."""
    return plant.clouds[site].usd_per_gigabyte_out * size_bytes / _GIGABYTE


def brought_back_bytes(request: JobRequest, saved: Saved | None) -> float:
    """What must come back from a cloud in the end: as its owner says, else as much as its checkpoint."""
    if request.brings_back_bytes or saved is None or not saved.size_bytes:
        return request.brings_back_bytes or _UNTOLD_BYTES
    return float(saved.size_bytes)


def promise_at(
    readings: Readings,
    plant: Plant,
    request: JobRequest,
    place: Place,
    power_fraction: float,
    seconds: float | None,
    saved: Saved | None,
) -> Usage:
    """What a job would use at a place at most, at a cloud's price of now, with what leaves sites for it."""
    if seconds is None:
        return NOTHING
    promise = promise_of(request, place, plant, power_fraction, seconds)
    if saved is None and place.site not in plant.clouds:
        return promise
    usd = promise.usd
    if saved is not None:
        usd += egress_usd(plant, saved.site, place.site, saved.size_bytes)
    if place.site in plant.clouds:
        # Its energy is in its price, so that all of the promise is what its GPUs cost.
        usd += promise.gpu_hours * gpu_hour_usd(readings, plant, place.site) - promise.usd
        usd += leaving_usd(plant, place.site, brought_back_bytes(request, saved))
    return promise if usd == promise.usd else msgspec.structs.replace(promise, usd=usd)
