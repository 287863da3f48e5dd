"""Explanation: why does a job wait, and what would change that, at what price?"""

from __future__ import annotations

import msgspec

from wattline.physics import predict_speed
from wattline.policy.homing import home_of
from wattline.policy.judging import dominant, empty_facility, judge_request
from wattline.policy.naming import next_action
from wattline.policy.permission import judge_permission
from wattline.policy.placement import Choice, choose_place
from wattline.policy.pools import most_used
from wattline.policy.power import usable
from wattline.policy.pressure import judge_pressure
from wattline.policy.rooms import limit_of_each
from wattline.policy.waiting import find_wait
from wattline.spec.policy import Policy
from wattline.state import (
    ENDED,
    ActionKind,
    Job,
    JobRequest,
    JobState,
    Outcome,
    Place,
    Snapshot,
    Usage,
    Verdict,
    claim_of,
    project,
)
from wattline.units import format_named, format_share

_CAPS = (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4)


class BlockedBy(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    subject: str
    short_by: float | None
    unit: str | None


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was tried on the snapshot and works."""

    change: str
    starts_at: float
    cost_delta_usd: float | None


class Eta(msgspec.Struct, frozen=True, kw_only=True):
    """When a job will start by the last forecast: half of such jobs by p50, nine in ten by p90.

    Work is taken to come as it came lately, and the times are corrected by how wrong earlier ones were.
    None: not within the horizon, or too few samples to tell.
    """

    p50: float | None
    p90: float | None
    by: float | None = None  # a pledge, kept to nineteen in twenty; only where all say how long they take
    age_seconds: float
    samples: int
    horizon_seconds: float


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    state: JobState
    say: str
    blocked_by: BlockedBy | None
    eta: Eta | None
    options: tuple[Option, ...]
    verdicts: tuple[Verdict, ...]
    not_estimated: tuple[str, ...]


def explain(snapshot: Snapshot, policy: Policy, job_id: str) -> Explanation:
    """One dominant reason, and what would change it."""
    job = snapshot.job(job_id)
    if job.state is JobState.WAITING:
        return _explain_waiting(snapshot, policy, job)
    if job.state is JobState.PAUSED and not job.asked:
        here = [job.place.site] if job.place else None
        choice = choose_place(snapshot, policy, job.remainder, sites=here)
        return _explained(snapshot, policy, job, choice)
    claim = snapshot.claim(job_id)
    verdicts = job.verdicts
    if job.state is JobState.RUNNING and claim is not None:
        pressure = judge_pressure(snapshot, claim, policy.thresholds)
        if pressure.presses is not None:
            verdicts = (pressure.presses,)
    heeded = job.asked and job.state not in ENDED
    say = f"{job.state}: asked to {job.asked}" if heeded else job.say or _describe(job)
    eta, not_estimated = _expect(snapshot, job)
    return Explanation(
        job=job.id,
        state=job.state,
        say=say,
        blocked_by=_blocked_by(dominant(verdicts)),
        eta=eta,
        options=(),
        verdicts=verdicts,
        not_estimated=not_estimated,
    )


def _explain_waiting(snapshot: Snapshot, policy: Policy, job: Job) -> Explanation:
    choice = judge_request(snapshot, policy, job.remainder, home_of(snapshot, job))
    return _explained(snapshot, policy, job, choice)


def _explained(snapshot: Snapshot, policy: Policy, job: Job, choice: Choice) -> Explanation:
    reason = dominant(choice.verdicts)
    options = choose_options(snapshot, policy, job) if reason is not None else ()
    say = _sentence(job, reason, options) if reason is not None else f"fits now at {choice.place}"
    eta, not_estimated = _expect(snapshot, job)
    return Explanation(
        job=job.id,
        state=job.state,
        say=say,
        blocked_by=_blocked_by(reason),
        eta=eta,
        options=options,
        verdicts=choice.verdicts,
        not_estimated=not_estimated,
    )


def _expect(snapshot: Snapshot, job: Job) -> tuple[Eta | None, tuple[str, ...]]:
    """What the last forecast says of it, and what that leaves open."""
    if not job.will_start:
        return None, ()
    forecast, expected = snapshot.forecast, snapshot.expected(job.id)
    if forecast is None or expected is None:
        return None, ("eta",)
    times = {"p50": expected.p50_at, "p90": expected.p90_at}
    eta = Eta(
        **times,
        by=expected.by_at,
        age_seconds=max(0.0, snapshot.at - forecast.at),
        samples=forecast.samples,
        horizon_seconds=forecast.horizon_seconds,
    )
    return eta, tuple(f"eta.{name}" for name, at in times.items() if at is None)


def choose_options(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[Option, ...]:
    """Changes that would start the job: a cap, another GPU or site, later.

    Each was tried: `project` lays it over the snapshot, and nothing is over its limit there.
    """
    request, near = job.remainder, home_of(snapshot, job)
    base = usage_alone(snapshot, policy, request)
    found = [_with_other_gpu(snapshot, policy, job, near, base)]
    if _permitted(snapshot, policy, request):  # neither less power nor more patience changes a rule
        found.insert(0, _with_cap(snapshot, policy, job, near, base))
        found.append(_elsewhere(snapshot, policy, job, base))
        found.append(_later(snapshot, policy, job, near))
    return tuple(option for option in found if option is not None)


def _starts(after: Snapshot, policy: Policy, job: Job, place: Place, power_fraction: float = 1.0) -> bool:
    """Whether a job that is put there is carried: all it takes stays within what may be used."""
    start = next_action(job, ActionKind.START, place=place, fraction=power_fraction)
    begun = project(after, [start])
    claim = claim_of(job.request, place, after.plant, power_fraction)
    max_age = policy.thresholds.reading_max_age
    return all(begun.gpus_free(node) >= 0 for node, _ in claim.nodes) and all(
        begun.used(one, max_age) <= usable(begun, one, policy.thresholds) for one, _ in claim.amounts
    )


def _permitted(snapshot: Snapshot, policy: Policy, request: JobRequest) -> bool:
    return all(verdict.allows for verdict in judge_permission(snapshot, request, policy))


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


def _with_cap(
    snapshot: Snapshot, policy: Policy, job: Job, near: str | None, base: Usage | None
) -> Option | None:
    request, each = job.remainder, limit_of_each(job.request)
    devices = {cooling.device for cooling in snapshot.plant.coolings}
    for fraction in _CAPS if request.gpus else ():
        if each is not None and all(
            each <= max(one.least_limit_watts, fraction * one.limit_watts) for one in devices
        ):
            continue  # it draws no less under such a cap
        place = choose_place(
            snapshot, policy, request, power_fraction=fraction, near=near, explain=False
        ).place
        if place is None or not _starts(snapshot, policy, job, place, fraction):
            continue
        speed = predict_speed(fraction)
        return Option(
            change=f"cap its power at {format_share(fraction)} (speed {format_share(speed)}), "
            f"at {place.site}",
            starts_at=snapshot.at,
            cost_delta_usd=_costs_more_usd(snapshot, request, place, base, fraction, speed),
        )
    return None


def _with_other_gpu(
    snapshot: Snapshot, policy: Policy, job: Job, near: str | None, base: Usage | None
) -> Option | None:
    if not job.request.gpu_models:
        return None
    other = msgspec.structs.replace(job.remainder, gpu_models=())
    place = choose_place(snapshot, policy, other, near=near, explain=False).place
    if place is None or not _permitted(snapshot, policy, other) or not _starts(snapshot, policy, job, place):
        return None
    device = snapshot.plant.spots[snapshot.plant.node_number[place.nodes[0][0]]].node.device
    return Option(
        change=f"also accept {device.name if device else 'no GPU'}, at {place.site}",
        starts_at=snapshot.at,
        cost_delta_usd=_costs_more_usd(snapshot, other, place, base),
    )


def _elsewhere(snapshot: Snapshot, policy: Policy, job: Job, base: Usage | None) -> Option | None:
    """Another site: for a job that is paused at one, and for one whose data may not go everywhere."""
    here = job.place.site if job.state is JobState.PAUSED and job.place is not None else None
    request = job.remainder
    for allowed in (request, msgspec.structs.replace(request, residency=())):
        if here is None and (allowed is request or not request.residency):
            continue  # every site that it allows was tried already
        others = [site for site in snapshot.plant.sites if site != here]
        near = home_of(snapshot, job)
        place = choose_place(snapshot, policy, allowed, near=near, sites=others, explain=False).place
        if place is not None and _starts(snapshot, policy, job, place):
            site = snapshot.plant.sites[place.site]
            change = f"move it to {site.name}" if allowed is request else f"let its data go to {site.region}"
            delta = _costs_more_usd(snapshot, allowed, place, base)
            at_site = "" if allowed is request else f", at {site.name}"
            return Option(change=f"{change}{at_site}", starts_at=snapshot.at, cost_delta_usd=delta)
    return None


def _later(snapshot: Snapshot, policy: Policy, job: Job, near: str | None) -> Option | None:
    """When running jobs reach their longest, one after the other: the latest it could become."""
    found = find_wait(snapshot, policy, job.remainder, near)
    if found is None or not _starts(found.after, policy, job, found.place):
        return None
    return Option(
        change=f"wait until {found.last} has ended",
        starts_at=max(found.ends_at, snapshot.at),
        cost_delta_usd=0.0,
    )


def _blocked_by(verdict: Verdict | None) -> BlockedBy | None:
    if verdict is None:
        return None
    short = verdict.short_by
    return BlockedBy(
        rule=verdict.rule,
        subject=verdict.subject,
        short_by=short[0] if short else None,
        unit=short[1] if short else None,
    )


def _sentence(job: Job, reason: Verdict, options: tuple[Option, ...]) -> str:
    verb = "is refused by" if reason.outcome is Outcome.REFUSE else "waits for"
    missing = [(name, value) for name, value in reason.numbers.items() if name.startswith("short_by")]
    detail = f"{format_named(*missing[0])} short" if missing else reason.say
    text = f"{job.id} {verb} {reason.rule} of {reason.subject}" + (f": {detail}" if detail else "")
    return f"{text}. Starts if you {options[0].change}." if options else f"{text}."


def _describe(job: Job) -> str:
    if job.state is JobState.BLOCKED:
        return f"comes after {', '.join(job.request.after)}"
    where = f" at {job.place}" if job.place is not None else ""
    return f"{job.state}{where}"
