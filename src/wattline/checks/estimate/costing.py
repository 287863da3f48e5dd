"""Costing: what does a phase cost, by kind, at the place where it would run alone?

What earlier runs drew, by their meters, says more than what their GPUs may draw. What cannot be priced is
None with the reason, never a silent zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from wattline.checkpoint.cadence import (
    DEFAULT_PRIOR_SECONDS,
    UNMEASURED_SAVE_SECONDS,
    choose_interval_seconds,
)
from wattline.checks.estimate.durations import Lasting
from wattline.checks.estimate.records import Record
from wattline.checks.report import Cost
from wattline.policy.placing.cloud import choose_cloud, may_burst, offers
from wattline.policy.placing.judging import empty_facility
from wattline.policy.placing.placement import choose_place
from wattline.spec import Phase, Policy
from wattline.state import JobRequest, Place, Plant, Saved, Snapshot, peak_watts_at
from wattline.state.market import brought_back_bytes, leaving_usd
from wattline.units import SECONDS_PER_HOUR

_LATELY = 10  # runs whose draw counts
_BY_TIME = ("gpu_hours", "energy_kwh", "carbon_kg", "cost_usd")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseCost:
    """What one phase uses if it lasts its median; None where nobody knows."""

    phase: str
    lasting: Lasting
    gpu_hours: float | None = None
    energy_kwh: float | None = None
    carbon_kg: float | None = None
    cost: Cost = field(default_factory=Cost)
    peak_watts: float | None = None
    energy_from: str = ""  # measured or assumed
    not_estimated: Mapping[str, str] = field(default_factory=dict)


def place_alone(snapshot: Snapshot, policy: Policy, request: JobRequest) -> Place | None:
    """Where it would be put if nothing else ran."""
    empty = empty_facility(snapshot.plant).snapshot
    place = choose_place(empty, policy, request).place
    if place is None and snapshot.plant.clouds and may_burst(request, policy):
        chosen = choose_cloud(empty, policy, request, offers(snapshot, policy, request))
        return chosen[0].place if chosen is not None else None
    return place


def price_phase(
    request: JobRequest,
    lasting: Lasting,
    records: Sequence[Record],
    *,
    plant: Plant,
    place: Place | None,
    phase: Phase | None = None,
) -> PhaseCost:
    """`phase` says how checkpoints are kept; without it they cost nothing.

    The total is of what has a price; what has none is named.
    """
    if place is None:
        names = (*_BY_TIME, "peak_watts")
        why = dict.fromkeys(names, "it fits nowhere in this facility")
        return PhaseCost(phase=request.phase, lasting=lasting, not_estimated=why)
    peak_watts = peak_watts_at(request, place, plant, 1.0)
    draws = request.gpus > 0 or peak_watts > 0.0
    if lasting.p50_seconds is None and draws:  # what draws nothing costs nothing, however long
        why = dict.fromkeys(_BY_TIME, lasting.source)
        return PhaseCost(phase=request.phase, lasting=lasting, peak_watts=peak_watts, not_estimated=why)
    hours = (lasting.p50_seconds or 0.0) / SECONDS_PER_HOUR
    not_estimated: dict[str, str] = {}
    site = plant.sites[place.site]
    device = plant.spots[plant.node_number[place.nodes[0][0]]].node.device
    it_kw, energy_from = _kilowatts(request, records, peak_watts)
    gpu_hours, kwh = request.gpus * hours, it_kw * hours * site.pue
    kinds = {
        "compute": gpu_hours * device.usd_per_hour if device is not None else 0.0,
        "energy": kwh * site.usd_per_kwh,
        "transfer": _price_transfer(request, phase, records, plant, place, hours, not_estimated),
        "storage": _price_storage(phase, records, plant, place, not_estimated),
    }
    return PhaseCost(
        phase=request.phase,
        lasting=lasting,
        gpu_hours=gpu_hours,
        energy_kwh=kwh,
        carbon_kg=kwh * site.grams_co2_per_kwh / 1000.0,
        cost=Cost(**kinds, total=sum(usd for usd in kinds.values() if usd is not None)),
        peak_watts=peak_watts,
        energy_from=energy_from,
        not_estimated=not_estimated,
    )


def _kilowatts(request: JobRequest, records: Sequence[Record], peak_watts: float) -> tuple[float, str]:
    """What a phase draws at its nodes on average: by meters where there were some, else its peak."""
    drawn = [
        record.it_kwh * SECONDS_PER_HOUR / record.seconds * _ratio(request.gpus, record.gpus)
        for record in records[-_LATELY:]
        if record.it_kwh is not None and record.seconds > 0.0 and bool(record.gpus) == bool(request.gpus)
    ]
    if drawn:
        return median(drawn), f"measured in {len(drawn)} recorded run{'s' if len(drawn) > 1 else ''}"
    return peak_watts / 1000.0, "its peak: nothing was measured yet"


def _ratio(gpus: int, had: int) -> float:
    return gpus / had if had else 1.0


def _price_transfer(
    request: JobRequest,
    phase: Phase | None,
    records: Sequence[Record],
    plant: Plant,
    place: Place,
    hours: float,
    not_estimated: dict[str, str],
) -> float | None:
    """Every checkpoint is copied whole; what a copy already has is not counted off, so this is the most."""
    if place.site in plant.clouds:
        return leaving_usd(plant, place.site, brought_back_bytes(request, _newest_saved(records)))
    links = [plant.links.get(frozenset((place.site, site))) for site in request.replicate_to]
    usd_per_gigabyte = sum(link.usd_per_gigabyte for link in links if link is not None)
    if not usd_per_gigabyte or phase is None or phase.checkpoint is None:
        return 0.0
    saved = _newest_saved(records)
    if saved is None:
        not_estimated["cost_usd.transfer"] = "how large its checkpoints are is not known: none was recorded"
        return None
    every = phase.checkpoint.every
    seconds = every.seconds if every != "auto" else _auto_seconds(saved)
    copies = max(1.0, hours * SECONDS_PER_HOUR / seconds)
    return copies * saved.size_bytes / 1e9 * usd_per_gigabyte


def _auto_seconds(saved: Saved) -> float:
    save_seconds = saved.seconds or UNMEASURED_SAVE_SECONDS
    return float(choose_interval_seconds(save_seconds, DEFAULT_PRIOR_SECONDS))


def _newest_saved(records: Sequence[Record]) -> Saved | None:
    return next(
        (record.saved for record in reversed(records) if record.saved and record.saved.size_bytes), None
    )


def _price_storage(
    phase: Phase | None,
    records: Sequence[Record],
    plant: Plant,
    place: Place,
    not_estimated: dict[str, str],
) -> float | None:
    """What is kept of its checkpoints, here and at each site that has replicas, for a month."""
    if phase is None or phase.checkpoint is None:
        return 0.0
    sites = (place.site, *phase.checkpoint.replicate_to)
    prices = [
        plant.sites[site].storage.usd_per_gigabyte_month if site in plant.sites else None for site in sites
    ]
    known = [price for price in prices if price is not None]
    saved = _newest_saved(records)
    if len(known) < len(prices):
        not_estimated["cost_usd.storage"] = "the facility sets no price for storage"
        return None
    if saved is None:
        not_estimated["cost_usd.storage"] = "how large its checkpoints are is not known: none was recorded"
        return None
    return phase.checkpoint.keep * saved.size_bytes / 1e9 * sum(known)
