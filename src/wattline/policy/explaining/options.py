"""Options: which changes would start a job that waits, at what price?

Each was tried: it is laid over the snapshot, beside what is kept for others, and nothing is over its limit
there. What it takes to have it is said in the fields of the pipeline's document.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from wattline.policy.admitting.kept_places import after_kept, beside_kept, fits_in_between
from wattline.policy.explaining.changes import (
    Change,
    device_at,
    in_any_region,
    sooner_changes,
    under_cap,
    with_any_gpu,
    with_fewer_gpus,
)
from wattline.policy.explaining.mildest import LOWEST_CAP, mildest_cap
from wattline.policy.giving_way.capping import capping_sites
from wattline.policy.headroom.loosening import Loosened
from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.cloud import offers
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.offering import (
    Option,
    costs_more_usd,
    is_carried,
    is_permitted,
    usage_alone,
    written_seconds,
)
from wattline.policy.placing.placement import choose_place
from wattline.policy.placing.waiting import find_waits
from wattline.policy.scaling.bursting import choose_burst
from wattline.spec.policy import Policy
from wattline.state import Job, JobRequest, JobState, Place, Snapshot, Usage
from wattline.units import format_seconds

replace = msgspec.structs.replace

# Where fewer changes than this would start a job at once or later as it is, others are offered that would
# start it sooner than it could as it is.
ENOUGH = 3


def choose_options(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[Option, ...]:
    """Changes that would start the job: a cap, another GPU or site, a shorter duration, fewer GPUs, later."""
    request, near = job.remainder, home_of(snapshot, job)
    base = usage_alone(snapshot, policy, request)
    now = later = snapshot
    found: list[Option | None] = []
    permitted = is_permitted(snapshot, policy, request)  # neither less power nor patience changes a rule
    if snapshot.reservations:
        now, later = beside_kept(snapshot, policy, job.id)[0], after_kept(snapshot, policy, job.id)
        found.append(_in_between(snapshot, policy, job) if permitted else None)
    if permitted:
        found.append(_with_cap(now, policy, request, near, base))
    tried = {pool for _, pool in pools_for(now.plant, policy, request)} if permitted else set[int]()
    if request.gpu_models:
        found.append(_try(now, policy, with_any_gpu(now, request, base), near, tried))
    if permitted:
        found.append(_elsewhere(now, policy, job, base))
        if request.residency:
            found.append(_try(now, policy, in_any_region(now, request, base), near, tried))
        if now.plant.clouds and policy.bursting.jobs != "none" and request.gpus:
            found.append(_in_cloud(now, policy, job, base))
        found.append(_with_fewer_gpus(now, policy, request, near))
    options = [option for option in found if option is not None]
    if permitted:
        options += _later(later, policy, request, near, base, options)
    return tuple(options)


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
        brief=f"if it declared {said} at most",
        fields={"constraints.max_duration": written_seconds(seconds)},
    )


def _with_cap(
    snapshot: Snapshot, policy: Policy, request: JobRequest, near: str | None, base: Usage | None
) -> Option | None:
    """The mildest cap that does, to a hundredth of the limit: what does under one does under a lower one.

    The mildest for which there may be room comes first: most of the time there is.
    """
    cap = mildest_cap(snapshot, policy, request) if request.gpus else None
    if cap is None:
        return None
    enough, too_much = cap.hundredths, cap.hundredths + 1
    place = _place_under(snapshot, policy, request, near, enough, cap.pools)
    if place is None:
        enough, too_much = LOWEST_CAP, enough
        place = _place_under(snapshot, policy, request, near, enough)
    if place is None:
        return None
    while too_much - enough > 1:
        middle = (too_much + enough) // 2
        found = _place_under(snapshot, policy, request, near, middle)
        if found is None:
            too_much = middle
        else:
            place, enough = found, middle
    device = device_at(snapshot, place)
    each = 0.0 if device is None else max(device.least_limit_watts, enough / 100.0 * device.limit_watts)
    change = under_cap(snapshot, request, base, each)
    # What is laid out is what is written down: there it must be carried, with no watt more.
    return change.tell(place) if is_carried(snapshot, policy, change.request, place) else None


def _place_under(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    near: str | None,
    hundredths: int,
    only: Sequence[int] | None = None,
) -> Place | None:
    return choose_place(
        snapshot,
        policy,
        request,
        power_fraction=hundredths / 100.0,
        near=near,
        sites=capping_sites(snapshot.plant),
        only=only,
        explain=False,
        judge=False,
        roomy=only is not None,
    ).place


def _try(
    snapshot: Snapshot, policy: Policy, change: Change, near: str | None, tried: set[int]
) -> Option | None:
    """Whether a change does, in pools that were not tried for the job as it is."""
    pools = [pool for _, pool in pools_for(snapshot.plant, policy, change.request) if pool not in tried]
    pools = Loosened(snapshot, policy, pools).pools(change.request)
    option = _tell(snapshot, policy, change, near, pools) if pools else None
    return option if option is not None and is_permitted(snapshot, policy, change.request) else None


def _tell(
    snapshot: Snapshot, policy: Policy, change: Change, near: str | None, pools: Sequence[int]
) -> Option | None:
    """A change that has a place in some of these pools."""
    place = choose_place(
        snapshot, policy, change.request, near=near, only=pools, explain=False, judge=False
    ).place
    if place is None or not is_carried(snapshot, policy, change.request, place):
        return None
    return change.tell(place)


def _elsewhere(snapshot: Snapshot, policy: Policy, job: Job, base: Usage | None) -> Option | None:
    """Another site, for a job that is paused at one."""
    here = job.place.site if job.state is JobState.PAUSED and job.place is not None else None
    if here is None:
        return None  # every site that it allows was tried already
    request, near = job.remainder, home_of(snapshot, job)
    others = [site for site in snapshot.plant.sites if site != here]
    place = choose_place(snapshot, policy, request, near=near, sites=others, explain=False, judge=False).place
    if place is None or not is_carried(snapshot, policy, request, place):
        return None
    return Option(
        change=f"move it to {place.site}",
        starts_at=snapshot.at,
        cost_delta_usd=costs_more_usd(snapshot, request, place, base),
        brief=f"in {place.site}",
    )


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
        brief=f"if it may burst to {terms.site}",
        fields={"constraints.burst": "true"},
    )


def _with_fewer_gpus(
    snapshot: Snapshot, policy: Policy, request: JobRequest, near: str | None
) -> Option | None:
    """Half as many, or half of that, and so on; who may be resized is offered its widths instead."""
    if request.elastic is not None:
        return None
    pools = [pool for _, pool in pools_for(snapshot.plant, policy, request)]
    loosened, gpus = Loosened(snapshot, policy, pools), request.gpus
    # Where not even one more GPU is carried, neither are several: most of the time that is all to be asked.
    if gpus > 1 and not loosened.may_fit(with_fewer_gpus(snapshot, request, 1).request):
        return None
    while gpus := gpus // 2:
        change = with_fewer_gpus(snapshot, request, gpus)
        if not loosened.may_fit(change.request) or not is_permitted(snapshot, policy, change.request):
            continue
        option = _tell(snapshot, policy, change, near, loosened.pools(change.request))
        if option is not None:
            return option
    return None


def _later(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    near: str | None,
    base: Usage | None,
    found: Sequence[Option],
) -> list[Option]:
    """When running jobs reach their longest, one after the other: the latest it could become; and changes
    with which it would be sooner, where few would start it now.
    """
    most = ENOUGH - 1 - len(found)
    known = {field for option in found for field in option.fields}
    changes = list[Change]()
    if most > 0:
        others = sooner_changes(snapshot, policy, request, base)
        changes = [one for one in others if one.field not in known]
    waits = find_waits(snapshot, policy, [request, *[one.request for one in changes]], near, max(0, most))
    options: list[Option] = []
    for change, wait in zip(changes, waits[1:], strict=True):
        if wait is None or (waits[0] is not None and wait.ends_at >= waits[0].ends_at):
            continue
        if is_permitted(snapshot, policy, change.request):
            told = change.tell(wait.place)
            starts_at = max(wait.ends_at, snapshot.at)
            said = f"{told.change}, and wait until {wait.last} has ended, at the latest"
            options.append(replace(told, change=said, starts_at=starts_at, brief=""))
    if waits[0] is not None:
        starts_at = max(waits[0].ends_at, snapshot.at)
        change_none = f"wait until {waits[0].last} has ended, at the latest"
        options.append(Option(change=change_none, starts_at=starts_at, cost_delta_usd=0.0))
    return options
