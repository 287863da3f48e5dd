"""Options: which changes would start a job that waits, at what price?

Each was tried: it is laid over the snapshot, beside what is kept for others, and nothing is over its limit
there. What it takes to have it is said in the fields of the pipeline's document.
"""

from __future__ import annotations

import math

import msgspec

from wattline.physics import predict_speed
from wattline.policy.bursting import choose_burst
from wattline.policy.classes import judge_class
from wattline.policy.cloud import offers
from wattline.policy.homing import home_of
from wattline.policy.judging import empty_facility
from wattline.policy.kept_places import after_kept, beside_kept, fits_in_between
from wattline.policy.loosening import Loosened
from wattline.policy.permission import judge_permission
from wattline.policy.placement import choose_place
from wattline.policy.pools import most_used, pools_for
from wattline.policy.power import usable
from wattline.policy.waiting import find_wait
from wattline.spec.policy import Policy
from wattline.state import Job, JobRequest, JobState, Place, Snapshot, Usage, claim_of
from wattline.units import format_seconds, format_share

replace = msgspec.structs.replace

_LOWEST_CAP = 40  # hundredths of what a GPU may draw: below, it hardly works


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was tried on the snapshot and works."""

    change: str
    starts_at: float
    cost_delta_usd: float | None
    brief: str = ""  # the same after the words "starts now if"
    fields: dict[str, str | tuple[str, ...]] = {}  # what to write into the phase; empty: nothing


def choose_options(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[Option, ...]:
    """Changes that would start the job: a cap, another GPU or site, a shorter duration, later."""
    request, near = job.remainder, home_of(snapshot, job)
    base = usage_alone(snapshot, policy, request)
    now = later = snapshot
    found: list[Option | None] = []
    permitted = _permitted(snapshot, policy, request)  # neither less power nor patience changes a rule
    if snapshot.reservations:
        now, later = beside_kept(snapshot, policy, job.id)[0], after_kept(snapshot, policy, job.id)
        found.append(_in_between(snapshot, policy, job) if permitted else None)
    if permitted:
        found.append(_with_cap(now, policy, job, near, base))
    found.append(_with_other_gpu(now, policy, job, near, base))
    if permitted:
        found.append(_elsewhere(now, policy, job, base))
        if now.plant.clouds and policy.bursting.jobs != "none" and request.gpus:
            found.append(_in_cloud(now, policy, job, base))
        found.append(_later(later, policy, job, near))
    return tuple(option for option in found if option is not None)


def is_carried(
    after: Snapshot, policy: Policy, request: JobRequest, place: Place, power_fraction: float = 1.0
) -> bool:
    """Whether a job that is put there is carried: all it takes stays within what may be used."""
    begun = after.copy()
    claim = claim_of(request, place, after.plant, power_fraction)
    begun.keep(claim)
    max_age = policy.thresholds.reading_max_age
    return all(begun.gpus_free(node) >= 0 for node, _ in claim.nodes) and all(
        begun.used(one, max_age) <= usable(begun, one, policy.thresholds) for one, _ in claim.amounts
    )


def _permitted(snapshot: Snapshot, policy: Policy, request: JobRequest) -> bool:
    asked = judge_permission(snapshot, request, policy) + judge_class(snapshot, policy, request)
    return all(verdict.allows for verdict in asked)


def usage_alone(
    snapshot: Snapshot, policy: Policy, request: JobRequest, power_fraction: float = 1.0
) -> Usage | None:
    """What a job uses at most where it would be put if it were alone; None where it would fit nowhere."""
    empty = empty_facility(snapshot.plant).snapshot
    place = choose_place(empty, policy, request, power_fraction=power_fraction).place
    return most_used(request, place, snapshot.plant, power_fraction) if place is not None else None


def _costs_more_usd(
    snapshot: Snapshot,
    request: JobRequest,
    place: Place,
    base: Usage | None,
    power_fraction: float = 1.0,
    speed: float = 1.0,
) -> float | None:
    """What a job would cost beyond what it costs as asked; None where that is not known."""
    return (
        None
        if base is None
        else most_used(request, place, snapshot.plant, power_fraction).usd / speed - base.usd
    )


def _in_between(snapshot: Snapshot, policy: Policy, job: Job) -> Option | None:
    """Before a place that is kept for another is due."""
    found = fits_in_between(snapshot, policy, job)
    if found is None:
        return None
    seconds, place = found
    said = format_seconds(seconds)
    return Option(
        change=f"declare that it takes {said} at most, at {place.site}",
        starts_at=snapshot.at,
        cost_delta_usd=0.0,
        brief=f"it declared {said} at most",
        fields={"constraints.max_duration": written_seconds(seconds)},
    )


def _with_cap(
    snapshot: Snapshot, policy: Policy, job: Job, near: str | None, base: Usage | None
) -> Option | None:
    """The mildest cap that does, to a hundredth of the limit: what does under one does under a lower one."""
    if not job.request.gpus:
        return None
    place, enough, too_much = _place_under(snapshot, policy, job, near, _LOWEST_CAP), _LOWEST_CAP, 100
    if place is None:
        return None
    while too_much - enough > 1:
        middle = (too_much + enough) // 2
        found = _place_under(snapshot, policy, job, near, middle)
        if found is None:
            too_much = middle
        else:
            place, enough = found, middle
    request, fraction = job.remainder, enough / 100.0
    device = snapshot.plant.spots[snapshot.plant.node_number[place.nodes[0][0]]].node.device
    each = 0.0 if device is None else max(device.least_limit_watts, fraction * device.limit_watts)
    watts = math.floor(request.gpus * each)
    asked = replace(request, peak_watts=float(watts))
    if choose_place(snapshot, policy, asked, near=near, explain=False).place is None:
        return None  # it could not be written down so that it is taken
    speed = predict_speed(fraction)
    return Option(
        change=f"cap its power at {format_share(fraction)} (speed {format_share(speed)}), at {place.site}",
        starts_at=snapshot.at,
        cost_delta_usd=_costs_more_usd(snapshot, request, place, base, fraction, speed),
        brief=f"capped to {format_share(fraction)}",
        fields={"constraints.peak_power": f"{watts}W"},
    )


def _place_under(
    snapshot: Snapshot, policy: Policy, job: Job, near: str | None, hundredths: int
) -> Place | None:
    request, fraction = job.remainder, hundredths / 100.0
    devices = {cooling.device for cooling in snapshot.plant.coolings}
    if all(request.each_watts <= max(one.least_limit_watts, fraction * one.limit_watts) for one in devices):
        return None  # it draws no less under such a cap
    pools = [pool for _, pool in pools_for(snapshot.plant, policy, request)]
    if not Loosened(snapshot, policy, pools, fraction).may_fit(request):
        return None
    place = choose_place(snapshot, policy, request, power_fraction=fraction, near=near, explain=False).place
    return place if place is not None and is_carried(snapshot, policy, request, place, fraction) else None


def _with_other_gpu(
    snapshot: Snapshot, policy: Policy, job: Job, near: str | None, base: Usage | None
) -> Option | None:
    if not job.request.gpu_models:
        return None
    other = replace(job.remainder, gpu_models=())
    place = choose_place(snapshot, policy, other, near=near, explain=False).place
    if (
        place is None
        or not _permitted(snapshot, policy, other)
        or not is_carried(snapshot, policy, other, place)
    ):
        return None
    device = snapshot.plant.spots[snapshot.plant.node_number[place.nodes[0][0]]].node.device
    name = device.name if device else "no GPU"
    return Option(
        change=f"also accept {name}, at {place.site}",
        starts_at=snapshot.at,
        cost_delta_usd=_costs_more_usd(snapshot, other, place, base),
        brief=f"it accepts {name} too",
        fields={"resources.gpu": (*job.request.gpu_models, name)},
    )


def _elsewhere(snapshot: Snapshot, policy: Policy, job: Job, base: Usage | None) -> Option | None:
    """Another site: for a job that is paused at one, and for one whose data may not go everywhere."""
    here = job.place.site if job.state is JobState.PAUSED and job.place is not None else None
    request = job.remainder
    for allowed in (request, replace(request, residency=())):
        if here is None and (allowed is request or not request.residency):
            continue  # every site that it allows was tried already
        others = [site for site in snapshot.plant.sites if site != here]
        near = home_of(snapshot, job)
        place = choose_place(snapshot, policy, allowed, near=near, sites=others, explain=False).place
        if place is not None and is_carried(snapshot, policy, allowed, place):
            site = snapshot.plant.sites[place.site]
            is_asked = allowed is request
            change = f"move it to {site.name}" if is_asked else f"let its data go to {site.region}"
            at_site = "" if is_asked else f", at {site.name}"
            return Option(
                change=f"{change}{at_site}",
                starts_at=snapshot.at,
                cost_delta_usd=_costs_more_usd(snapshot, allowed, place, base),
                brief=f"in {site.name}",
                fields={} if is_asked else {"constraints.residency": (*request.residency, site.region)},
            )
    return None


def _in_cloud(snapshot: Snapshot, policy: Policy, job: Job, base: Usage | None) -> Option | None:
    """Rented machines, where some are free and its team can pay them; `wattline burst` takes it."""
    chosen = choose_burst(snapshot, policy, job, offers(snapshot, policy, job.remainder, job.saved))
    if chosen is None:
        return None
    choice, terms = chosen
    if choice.place is None or not is_carried(snapshot, policy, job.remainder, choice.place):
        return None
    return Option(
        change=f"let it burst to {terms.site} ({terms.say()})",
        starts_at=snapshot.at,
        cost_delta_usd=None if base is None else terms.usd - base.usd,
        brief=f"it may burst to {terms.site}",
        fields={"constraints.burst": "true"},
    )


def _later(snapshot: Snapshot, policy: Policy, job: Job, near: str | None) -> Option | None:
    """When running jobs reach their longest, one after the other: the latest it could become."""
    found = find_wait(snapshot, policy, job.remainder, near)
    if found is None or not is_carried(found.after, policy, job.remainder, found.place):
        return None
    return Option(
        change=f"wait until {found.last} has ended",
        starts_at=max(found.ends_at, snapshot.at),
        cost_delta_usd=0.0,
    )


def written_seconds(seconds: float) -> str:
    """A duration as a document has it, not longer than this."""
    return f"{math.floor(seconds / 60)}min" if seconds >= 60 else f"{math.floor(seconds)}s"


def tell_options(options: tuple[Option, ...], at: float, most: int = 2) -> str:
    """What would start it now: "Starts now if capped to 92 %, or in oslo for +41.00 USD"."""
    ways = []
    for option in options:
        if option.brief and option.starts_at <= at:
            delta = option.cost_delta_usd
            price = f" for {delta:+.2f} USD" if delta is not None and abs(delta) >= 0.005 else ""
            ways.append(f"{option.brief}{price}")
    return f"Starts now if {', or '.join(ways[:most])}." if ways else ""
