"""The ladder: how jobs under pressure give way, a rung at a time, and come back when it has gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from wattline.policy.giving_way.attention import choose_attention
from wattline.policy.giving_way.capping import judge_capping, may_cap
from wattline.policy.giving_way.pressure import Pressure, judge_pressure, predict_hottest
from wattline.policy.giving_way.relief import ladder_of, predict_gpu_watts, predict_relief, relief_underway
from wattline.policy.giving_way.worth import Worth
from wattline.policy.headroom.power import judge_amount, usable
from wattline.policy.naming import next_action
from wattline.policy.permitting.reaching import sites_out_of_reach
from wattline.policy.placing.judging import changed
from wattline.policy.placing.placement import Choice, choose_place
from wattline.policy.placing.price import price_rung
from wattline.spec import compile_expression
from wattline.spec.ladder import PRESSURE_VARIABLES, Rung, RungKind
from wattline.spec.policy import Policy, Thresholds
from wattline.state import Action, ActionKind, Claim, Job, JobState, Snapshot, Verdict, claim_of

_KINDS = {
    RungKind.CAP_POWER: ActionKind.CAP_POWER,
    RungKind.SHRINK_BATCH: ActionKind.SHRINK_BATCH,
    RungKind.PAUSE: ActionKind.PAUSE,
    RungKind.MIGRATE: ActionKind.PAUSE,  # moving begins with a checkpoint
    RungKind.STOP: ActionKind.STOP,
}
_REVERSIBLE = frozenset({RungKind.CAP_POWER, RungKind.SHRINK_BATCH})
_NEEDS_CHECKPOINT = frozenset({RungKind.PAUSE, RungKind.MIGRATE})
# A rung may turn out to be too little: there must be time for one more.
_RUNGS_IN_TIME = 2.0

Lift = Callable[[Job, Action], Action | None]


@dataclass(frozen=True, slots=True)
class Step:
    """What one job would do, and what for."""

    job: Job
    action: Action
    verdict: Verdict
    urgent: bool  # its GPUs throttle before one rung could be tried after the other


class Response(msgspec.Struct):
    """What pressure asks for now."""

    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    eased: list[str] = msgspec.field(default_factory=list)
    pressed: list[str] = msgspec.field(default_factory=list)
    restless: list[str] = msgspec.field(default_factory=list)  # to look at next time in any case
    looks: list[float] = msgspec.field(default_factory=list)  # times to look again


def respond(draft: Snapshot, policy: Policy, lift: Lift | None = None) -> Response:
    """Ask the jobs that lose least to give way first, no more of them than it takes; let others come back.

    `lift` says how far one that comes back may do so at once; where it is None, all the way.
    """
    response = Response()
    steps: list[Step] = []
    for job_id in choose_attention(draft, policy.thresholds):
        job = draft.job(job_id)
        claim = draft.claim(job_id)
        if job.state is not JobState.RUNNING or claim is None or draft.flying(job.id):
            continue  # looked at again when that changes
        if draft.agent_of(job) is not None:
            continue  # pressure does not wait for a long way: its agent answers it
        pressure = judge_pressure(draft, claim, policy.thresholds)
        if pressure.presses is None:
            _watch(draft, policy, job, pressure, response)
            _ease(draft, policy, job, pressure, response, lift)
            continue
        response.restless.append(job.id)
        if job.clear_since is not None:
            response.pressed.append(job.id)
        settled_at = job.rung_at + policy.thresholds.settle
        settling = job.rung >= 0 and draft.at < settled_at
        urgent = is_urgent(pressure, policy.thresholds)
        if settling and not (urgent and not _is_enough(draft, policy, job, job.rung)):
            response.looks.append(settled_at)
            continue
        step = _next_step(draft, policy, job, pressure, urgent=urgent)
        verdict = msgspec.structs.replace(pressure.presses, job=job.id)
        if step is None:
            why = [one.say for one in judge_capping(draft, policy, job)]
            verdict = msgspec.structs.replace(verdict, say="; ".join(["no rung of its ladder is left", *why]))
            response.verdicts += [verdict] if changed(job, (verdict,)) else []
            response.looks.append(draft.at + policy.thresholds.settle)
        else:
            steps.append(Step(job, step, verdict, urgent))
    _take(draft, policy, steps, response)
    return response


def _take(draft: Snapshot, policy: Policy, steps: list[Step], response: Response) -> None:
    """The cheapest steps first, until what they free makes up for what is missing.

    Where GPUs are about to throttle, nobody's step makes up for another's: all who must, do.
    """
    thresholds = policy.thresholds
    missing: dict[str, float] = {}
    taken = 0
    if policy.throttling.is_on:
        steps = _weighed(draft, policy, steps)
    else:
        steps.sort(key=lambda step: (not step.urgent, step.action.lost_gpu_seconds, step.job.id))
    for step in steps:
        subject, short = step.verdict.subject, step.verdict.short_by
        if short is not None and subject not in missing:
            missing[subject] = short[0] - relief_underway(draft, policy, subject)
        enough = taken >= thresholds.jobs_per_response or missing.get(subject, 1.0) <= 0
        if enough and not step.urgent:
            response.looks.append(draft.at + thresholds.settle)
            continue
        if subject in missing:
            missing[subject] -= predict_relief(draft, policy, step.job, step.action.rung, subject)
        taken += not step.urgent
        draft.issue(step.action)
        response.actions.append(step.action)
        response.verdicts.append(step.verdict)


def _weighed(draft: Snapshot, policy: Policy, steps: list[Step]) -> list[Step]:
    """The same by what the work that is lost is worth, which each then says."""
    worth = Worth(draft, policy)
    prices = {step.job.id: step.action.lost_gpu_seconds * worth.weigh(step.job) for step in steps}
    told = []
    for step in sorted(steps, key=lambda step: (not step.urgent, prices[step.job.id], step.job.id)):
        weighed = {
            "weighed_gpu_seconds": prices[step.job.id],
            "confidence_fraction": worth.confidence(step.job),
            "work_usd": worth.usd_per_gpu_hour(step.job),
        }
        numbers = {**step.verdict.numbers, **weighed}
        told.append(replace(step, verdict=msgspec.structs.replace(step.verdict, numbers=numbers)))
    return told


def _watch(draft: Snapshot, policy: Policy, job: Job, pressure: Pressure, response: Response) -> None:
    """Keep an eye on a job that stands on a rung, or that will throttle later than is worth acting on now."""
    seconds = pressure.seconds_to_throttle
    if seconds is not None:
        response.looks.append(draft.at + seconds - policy.thresholds.throttle_horizon)
    if seconds is not None or job.rung >= 0:
        response.restless.append(job.id)


def is_urgent(pressure: Pressure, thresholds: Thresholds) -> bool:
    """Whether heat leaves no time to see what a rung does and, if it was too little, for the next to work."""
    seconds = pressure.seconds_to_throttle
    return seconds is not None and seconds < _RUNGS_IN_TIME * thresholds.settle


def choose_rung(
    draft: Snapshot, policy: Policy, job: Job, values: dict[str, object], after: int
) -> tuple[int, Rung] | None:
    """The next rung that applies: its condition holds, and the job can take it."""
    ladder = ladder_of(job, policy)
    for index in range(after + 1, len(ladder)):
        rung = ladder[index]
        if not applies(rung, values):
            continue
        if rung.kind in _NEEDS_CHECKPOINT and not job.request.checkpoints:
            continue
        if rung.kind is RungKind.CAP_POWER and job.place and not may_cap(draft.plant, job.place.site):
            continue
        if rung.kind is RungKind.MIGRATE and choose_elsewhere(draft, policy, job, rung) is None:
            continue
        return index, rung
    return None


def applies(rung: Rung, values: dict[str, object]) -> bool:
    """Whether a rung's condition holds; one without a condition always applies."""
    return not rung.when or compile_expression(rung.when, PRESSURE_VARIABLES).holds(values)


def choose_elsewhere(draft: Snapshot, policy: Policy, job: Job, rung: Rung) -> Choice | None:
    """A place at another site for a job that must move, or None."""
    here = job.place.site if job.place else ""
    away = sites_out_of_reach(draft, job) if job.unreached and not job.asked else ()
    others = [
        site
        for site in draft.plant.sites
        if site != here
        and site not in away
        and rung.to in ("any", site)
        and frozenset((here, site)) in draft.plant.links
    ]
    choice = choose_place(draft, policy, job.remainder, near=here or None, sites=others, explain=False)
    return choice if choice.place is not None else None


def _next_step(
    draft: Snapshot, policy: Policy, job: Job, pressure: Pressure, *, urgent: bool
) -> Action | None:
    chosen = choose_rung(draft, policy, job, pressure.values(), job.rung)
    while urgent and chosen is not None and not _is_enough(draft, policy, job, chosen[0]):
        further = choose_rung(draft, policy, job, pressure.values(), chosen[0])
        if further is None:
            break
        chosen = further
    if chosen is None or pressure.presses is None:
        return None
    index, rung = chosen
    return next_action(
        job,
        _KINDS[rung.kind],
        fraction=rung.amount if rung.kind in _REVERSIBLE else 1.0,
        rung=index,
        lost_gpu_seconds=price_rung(draft, job, rung),
        because=pressure.presses.sentence(),
    )


def _is_enough(draft: Snapshot, policy: Policy, job: Job, index: int) -> bool:
    """Whether a job's GPUs, on this rung, end below their limit, or leave enough time to look again."""
    claim, ladder = draft.claim(job.id), ladder_of(job, policy)
    if claim is None or index >= len(ladder):
        return True
    gpu_watts = predict_gpu_watts(draft, policy, claim, ladder[index])
    forecast = predict_hottest(draft, claim, policy.thresholds, gpu_watts)
    if forecast is None or forecast.seconds_to_throttle is None:
        return True
    steady_celsius = forecast.steady_celsius
    cools = steady_celsius is not None and steady_celsius <= forecast.limit_celsius
    return cools or forecast.seconds_to_throttle >= _RUNGS_IN_TIME * policy.thresholds.settle


def _ease(
    draft: Snapshot,
    policy: Policy,
    job: Job,
    pressure: Pressure,
    response: Response,
    lift: Lift | None,
) -> None:
    """Take back one rung once pressure has been gone long enough, if it would stay gone."""
    if job.rung < 0:
        return
    thresholds = policy.thresholds
    hands_over = _may_hand_over(draft, policy, job)
    action = _hand_over(job) if hands_over else _back(policy, job)
    roomy = min(pressure.power_headroom, pressure.cooling_headroom) >= thresholds.clear_margin
    if not hands_over and not (roomy and stays_clear(draft, policy, job, action)):
        if job.clear_since is not None:
            response.pressed.append(job.id)
        return
    if job.clear_since is None:
        response.eased.append(job.id)
        response.looks.append(draft.at + thresholds.clear_for)
    elif draft.at - job.clear_since < thresholds.clear_for:
        response.looks.append(job.clear_since + thresholds.clear_for)
    else:
        raised = action if lift is None else lift(job, action)
        if raised is not None:
            draft.issue(raised)
            response.actions.append(raised)


def _may_hand_over(draft: Snapshot, policy: Policy, job: Job) -> bool:
    """Whether a cap that watts asked for may be left to sharing: that fills what there is, so that the
    margin for coming back would never be there. Heat is none of its business."""
    claim, ladder = draft.claim(job.id), ladder_of(job, policy)
    if not policy.power_sharing.is_on or claim is None or job.place is None or job.rung >= len(ladder):
        return False
    if job.in_flight_fraction < 1.0 or ladder[job.rung].kind is not RungKind.CAP_POWER:
        return False
    full = claim_of(job.request, job.place, draft.plant)
    return judge_pressure(draft, claim, policy.thresholds, gpu_watts=full.gpu_watts).presses is None


def _hand_over(job: Job) -> Action:
    return next_action(
        job,
        ActionKind.CAP_POWER,
        fraction=job.power_fraction,
        rung=-1,
        because="pressure has gone; its watts are shared",
    )


def stays_clear(draft: Snapshot, policy: Policy, job: Job, action: Action) -> bool:
    """Would there be room for what the job may draw after this, with no new pressure?"""
    claim = draft.claim(job.id)
    if claim is None or job.place is None:
        return False
    fraction = action.fraction if action.kind is ActionKind.CAP_POWER else job.power_fraction
    lifted = claim_of(job.request, job.place, draft.plant, fraction)
    held = dict(claim.amounts)
    more = [(resource, amount - held.get(resource, 0)) for resource, amount in lifted.amounts]
    fits = all(
        judge_amount(draft, resource, extra, policy.thresholds).allows
        for resource, extra in more
        if extra > 0
    )
    if action.kind is ActionKind.SHRINK_BATCH:
        fits = fits and _carries(draft, policy, claim, action.fraction - job.in_flight_fraction)
    return fits and (
        judge_pressure(draft, claim, policy.thresholds, gpu_watts=lifted.gpu_watts).presses is None
    )


def _carries(draft: Snapshot, policy: Policy, claim: Claim, share: float) -> bool:
    """Would caps hold if this share of a claim were drawn on top? What is promised stays the same."""
    for resource, amount in claim.amounts:
        drawn = draft.drawn(resource, policy.thresholds.reading_max_age)
        most = max(drawn, float(draft.promised(resource)))
        if min(drawn + share * amount, most) > usable(draft, resource, policy.thresholds):
            return False
    return True


def _back(policy: Policy, job: Job) -> Action:
    """Undo the last rung: the same action with what the rung before it left.

    A pause or stop that failed left nothing to undo; the cap as it is then only says where the job stands.
    """
    ladder = ladder_of(job, policy)[: job.rung + 1]  # shorter than the rung where the policy has changed
    lower = next((index for index in range(job.rung - 1, -1, -1) if _reversible(ladder, index)), -1)
    if not _reversible(ladder, job.rung):
        fraction = job.power_fraction if lower >= 0 else 1.0
        return next_action(
            job, ActionKind.CAP_POWER, fraction=fraction, rung=lower, because="pressure has gone"
        )
    kind = ladder[job.rung].kind
    before = [rung for rung in ladder[: job.rung] if rung.kind is kind]
    return next_action(
        job,
        _KINDS[kind],
        fraction=before[-1].amount if before else 1.0,
        rung=lower,
        because="pressure has gone",
    )


def _reversible(ladder: tuple[Rung, ...], index: int) -> bool:
    return index < len(ladder) and ladder[index].kind in _REVERSIBLE
