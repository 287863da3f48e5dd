"""Explanation: why does a job wait, and what would change that, at what price?"""

from __future__ import annotations

import msgspec

from wattline.policy.admitting.kept_places import KeptPlace, When, find_kept, tell_kept
from wattline.policy.admitting.returning import clear_seconds, count_short_stays
from wattline.policy.explaining.options import choose_options
from wattline.policy.giving_way.capping import judge_capping
from wattline.policy.giving_way.pressure import judge_pressure
from wattline.policy.permitting.reaching import judge_fetching, judge_reach
from wattline.policy.permitting.readiness import when_ready
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.judging import dominant, judge_request
from wattline.policy.placing.offering import Option, tell_options
from wattline.policy.placing.placement import Choice, choose_place
from wattline.policy.scaling.bursting import choose_now
from wattline.policy.scaling.scaling import scale
from wattline.policy.scaling.waking import WAKING
from wattline.policy.scaling.widths import judge_narrower, offer_narrower
from wattline.policy.shifting.shifting import is_held_back
from wattline.policy.watts.staggering import Paced, stagger_of
from wattline.spec.policy import Policy
from wattline.state import ENDED, Job, JobState, Outcome, Place, ResourceKind, Snapshot, Verdict
from wattline.units import format_named, format_seconds, format_watts

_CLEARED = "pressure.cleared"
_BACKOFF = "restart.backoff"
# What people call that which is short; else it is named by its rule.
_THINGS = {
    ResourceKind.RACK: "rack",
    ResourceKind.SUPPLY: "supply",
    ResourceKind.LOOP: "coolant loop",
    ResourceKind.LINK: "link",
    ResourceKind.STORAGE: "storage",
    "gpus": "GPUs of",
    "locality": "enough GPUs close together at",
    "heat.throttle": "heat of loop",
    "power.hold": "the end of hold",
    "sites.reach": "site",
    "sites.fetch": "its checkpoint to come to",
    _CLEARED: "pressure to stay gone at",
}


class BlockedBy(msgspec.Struct, frozen=True, kw_only=True):
    rule: str
    subject: str
    short_by: float | None
    unit: str | None


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
    say: str  # the reason, and what would start it now
    blocked_by: BlockedBy | None
    eta: Eta | None
    reason: str = ""  # the first part of it
    remedy: str = ""  # … and the second
    kept: KeptPlace | None = None  # its own reservation, or the one that it waits behind
    options: tuple[Option, ...]
    verdicts: tuple[Verdict, ...]
    not_estimated: tuple[str, ...]
    at: float = 0.0

    def tell(self, eta: str, when: When) -> str:
        """One paragraph: why, when by the clock, and what would start it now."""
        kept = self.kept
        reason = f"{self.job} {tell_kept(kept, self.at, when)}" if kept is not None else self.reason
        return " ".join([f"{part.rstrip('.')}." for part in (reason, eta, self.remedy) if part])


def explain(snapshot: Snapshot, policy: Policy, job_id: str) -> Explanation:
    """One dominant reason, and what would change it."""
    job = snapshot.job(job_id)
    if job.state is JobState.WAITING:
        return _explain_waiting(snapshot, policy, job)
    if job.state is JobState.PAUSED and not job.asked:
        here = [job.place.site] if job.place and job.place.site not in snapshot.plant.clouds else None
        choice = choose_place(snapshot, policy, job.remainder, sites=here)
        return _explained(snapshot, policy, job, choice)
    claim = snapshot.claim(job_id)
    verdicts = job.verdicts
    if job.state is JobState.RUNNING and claim is not None:
        pressure = judge_pressure(snapshot, claim, policy.thresholds)
        if pressure.presses is not None:
            verdicts = (pressure.presses,)
        verdicts = (*verdicts, *judge_capping(snapshot, policy, job))
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
    if snapshot.reservations:
        choice, kept = find_kept(snapshot, policy, job)
        return _explained(snapshot, policy, job, choice, kept)
    choice = judge_request(snapshot, policy, job.remainder, home_of(snapshot, job))
    if choice.place is None and policy.resizing is not None and job.request.elastic is not None:
        choice = judge_narrower(snapshot, policy, job, choice)
    if choice.place is None and snapshot.plant.clouds:
        choice = choose_now(snapshot, policy, job) or choice
    if policy.scaling is not None and choice.place is None:
        waits_for = scale(snapshot.copy(), policy, anew=True).waits.get(job.id)
        if waits_for is not None:
            choice = Choice(None, (waits_for, *choice.verdicts))
    return _explained(snapshot, policy, job, choice)


def _explained(
    snapshot: Snapshot, policy: Policy, job: Job, choice: Choice, kept: KeptPlace | None = None
) -> Explanation:
    paced = _pace(snapshot, policy, job, choice)
    if paced is not None:
        choice = Choice(None, paced.verdicts)
    verdicts = choice.verdicts
    if choice.place is not None:
        held = _held if job.state is JobState.WAITING else _stays_away
        verdicts = (*verdicts, *_far(snapshot, job, choice.place), *held(snapshot, policy, job))
        verdicts = (*verdicts, *_judge_hold(snapshot, policy, job, choice.place.site))
    reason = dominant(verdicts)
    options: tuple[Option, ...] = ()
    if paced is not None:
        options = tuple(_in_time(snapshot, verdict) for verdict in paced.verdicts if _WAIT in verdict.numbers)
    elif reason is not None and choice.place is None:
        options = choose_options(snapshot, policy, job)
        if job.request.elastic is not None:
            options = (*offer_narrower(snapshot, policy, job, choice), *options)
    remedy = tell_options(options, snapshot.at)
    why = f"fits now at {choice.place}"
    if choice.place is not None and choice.place.gpus < job.request.gpus:
        why = f"starts now with {choice.place.gpus} of {job.request.gpus} GPUs, at {choice.place}"
    if reason is not None:
        why = _sentence(job, reason) if kept is None else f"{job.id} {tell_kept(kept, snapshot.at)}"
    elif kept is not None:
        kept = None  # it starts with the next decision
    eta, not_estimated = _expect(snapshot, job)
    return Explanation(
        job=job.id,
        state=job.state,
        say=why if reason is None else f"{why}. {remedy}" if remedy else f"{why}.",
        reason=why,
        remedy=remedy,
        kept=kept,
        at=snapshot.at,
        blocked_by=_blocked_by(reason),
        eta=eta,
        options=options,
        verdicts=verdicts,
        not_estimated=not_estimated,
    )


_WAIT = "starts_in_seconds"


def _pace(snapshot: Snapshot, policy: Policy, job: Job, choice: Choice) -> Paced | None:
    """What a job that has a place waits for before it may begin there; None: it may now."""
    stagger = stagger_of(snapshot.copy(), policy) if choice.place is not None else None
    paced = stagger.pace(job, choice) if stagger is not None else None
    return paced if paced is not None and paced.choice.place is None else None


def _in_time(snapshot: Snapshot, verdict: Verdict) -> Option:
    seconds = verdict.numbers[_WAIT]
    return Option(
        change=f"wait {format_seconds(seconds)}", starts_at=snapshot.at + seconds, cost_delta_usd=0.0
    )


def _far(snapshot: Snapshot, job: Job, place: Place) -> tuple[Verdict, ...]:
    """Why what a job would go on from cannot be had where it would fit."""
    found = (judge_reach(snapshot, job), judge_fetching(snapshot, job, place))
    return tuple(verdict for verdict in found if verdict is not None)


def _held(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[Verdict, ...]:
    """Why a job that would fit is not started all the same: better hours, or a rest after a failure."""
    ready_at = when_ready(job, policy)
    if snapshot.at < ready_at:
        left = ready_at - snapshot.at
        say = f"tried again in {format_seconds(left)}, after {job.say or 'a failure'}"
        return (Verdict(rule=_BACKOFF, subject=job.id, outcome=Outcome.WAIT, say=say),)
    return job.verdicts if policy.shifting.is_on and is_held_back(job) else ()


def _judge_hold(snapshot: Snapshot, policy: Policy, job: Job, site: str) -> tuple[Verdict, ...]:
    """Whether a hold keeps a job from a place that is free: it takes watts only while somebody decides."""
    holds = [hold for hold in policy.power_sharing.holds if hold.site == site and hold.is_on(snapshot.at)]
    if not holds or job.state is not JobState.WAITING or not snapshot.is_stuck(job.id):
        return ()
    hold = min(holds, key=lambda one: one.watts)
    left = (hold.next_change_at(snapshot.at) or snapshot.at) - snapshot.at
    say = f"{site} may draw {format_watts(hold.watts)} for {format_seconds(left)} more, and has none for it"
    numbers = {"limit_watts": hold.watts, "left_seconds": left}
    return (Verdict(rule="power.hold", subject=hold.name, outcome=Outcome.WAIT, say=say, numbers=numbers),)


def _stays_away(snapshot: Snapshot, policy: Policy, job: Job) -> tuple[Verdict, ...]:
    """Why a job that gave way does not come back at once where there is room for it again."""
    thresholds = policy.thresholds
    rests_seconds, since = clear_seconds(job, thresholds), job.clear_since
    left = rests_seconds - (0.0 if since is None else snapshot.at - since)
    if job.rung < 0 or job.returns_to is not None or left <= 0.0 or job.place is None:
        return ()
    say = f"comes back in {format_seconds(left)}, once it has been gone for {format_seconds(rests_seconds)}"
    stays = count_short_stays(job, thresholds)
    if stays > 1:
        say += f"; it had to leave {stays} times soon after it began there"
    numbers = {"left_seconds": left, "clear_seconds": rests_seconds}
    site = job.place.site
    return (Verdict(rule=_CLEARED, subject=site, outcome=Outcome.WAIT, say=say, numbers=numbers),)


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


def _sentence(job: Job, reason: Verdict) -> str:
    verb = "is refused by" if reason.outcome is Outcome.REFUSE else "waits for"
    if reason.rule == WAKING:
        left = format_named("left_seconds", reason.numbers["left_seconds"])
        return f"{job.id} waits for node {reason.subject} to wake: {left}"
    if reason.rule == _BACKOFF:
        return f"{job.id} waits: {reason.say}"
    missing = [(name, value) for name, value in reason.numbers.items() if name.startswith("short_by")]
    detail = f"{format_named(*missing[0])} short" if missing else reason.say
    called = _THINGS.get(reason.rule) if reason.outcome is Outcome.WAIT else None
    thing = f"{called or f'{reason.rule} of'} {reason.subject}"
    return f"{job.id} {verb} {thing}" + (f": {detail}" if detail else "")


def _describe(job: Job) -> str:
    if job.state is JobState.BLOCKED:
        return f"comes after {', '.join(job.request.after)}"
    where = f" at {job.place}" if job.place is not None else ""
    return f"{job.state}{where}"
