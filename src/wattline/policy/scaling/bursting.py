"""Bursting: which waiting jobs go to a cloud, and when?

A job that may burst goes where the policy's objective finds it cheapest: to a region that costs less than the
cheapest pool of our own that could ever take it, at once. Otherwise our own halls come first, until waiting
any longer would make it miss its deadline. A person may also say that it goes now.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec

from wattline.policy.naming import next_action
from wattline.policy.permitting.classes import judge_class
from wattline.policy.permitting.permission import judge_permission
from wattline.policy.permitting.pools import pools_for
from wattline.policy.permitting.readiness import when_ready
from wattline.policy.placing.cloud import Terms, choose_cloud, cloud_pool, judge_terms, may_burst, offers
from wattline.policy.placing.judging import judge_ever
from wattline.policy.placing.placement import Choice
from wattline.spec.policy import Policy
from wattline.state import (
    Action,
    ActionKind,
    Job,
    JobState,
    Plant,
    Snapshot,
    Verdict,
    compared_hours,
    waiting_key,
)
from wattline.state.market import gpu_hour_usd

replace = msgspec.structs.replace


class Burst(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)


def burst_cheaper(draft: Snapshot, policy: Policy) -> Burst:
    """Before our own halls are looked at: who is better off in a cloud in any case, or was told to go."""
    burst = Burst()
    least_usd = _least_usd(draft, policy)
    if math.isinf(least_usd):
        return burst
    for job in _in_line(draft, policy):
        if job.id in draft.reservations:  # a place of our own is kept for it
            continue
        found, why = _better_offers(draft, policy, job, least_usd)
        if found:
            _begin(draft, policy, job, found, why, burst)
    return burst


def _better_offers(draft: Snapshot, policy: Policy, job: Job, least_usd: float) -> tuple[list[Terms], str]:
    """Regions that a job had better go to now, and why; none for most."""
    own = own_score(draft, policy, job)
    # What is paid for GPUs alone says for most that our own are cheaper.
    paid = least_usd * job.request.gpus * compared_hours(job.remainder)
    if not job.bursts and policy.weights.cost * paid >= own:
        return [], ""
    found = offers(draft, policy, job.remainder, job.saved)
    if job.bursts:
        return found, "a person said so"
    why = "none of our own could take it" if math.isinf(own) else "costs less than our own"
    return [terms for terms in found if terms.score(policy.weights) < own], why


def choose_now(draft: Snapshot, policy: Policy, job: Job) -> Choice | None:
    """Where in a cloud a job that waits would be put by the next decision; None: nowhere."""
    least_usd = _least_usd(draft, policy)
    if math.isinf(least_usd) or not may_burst(job.request, policy) or when_ready(job, policy) > draft.at:
        return None
    found, _ = _better_offers(draft, policy, job, least_usd)
    if not found and latest_start(job, policy) <= draft.at and _is_worth_renting(job, draft.at):
        found = offers(draft, policy, job.remainder, job.saved)
    chosen = choose_burst(draft, policy, job, found) if found else None
    return chosen[0] if chosen is not None else None


def burst_late(draft: Snapshot, policy: Policy) -> Burst:
    """After our own halls were: who found nothing there and would come too late by waiting on."""
    burst = Burst()
    if math.isinf(_least_usd(draft, policy)):  # who leaves a machine there says so
        return burst
    by_time = sorted((latest_start(job, policy), job.id) for job in _in_line(draft, policy))
    for starts_by, job_id in by_time:
        if draft.at < starts_by:
            if starts_by < math.inf:
                burst.looks.append(starts_by)
            break
        job = draft.job(job_id)
        if not _is_worth_renting(job, draft.at):
            continue
        found = offers(draft, policy, job.remainder, job.saved)
        _begin(draft, policy, job, found, "it would miss its deadline", burst)
    return burst


def _least_usd(draft: Snapshot, policy: Policy) -> float:
    """The least that a GPU-hour costs in a region where one is free; infinite where none is."""
    plant = draft.plant
    if policy.bursting.jobs == "none":
        return math.inf
    free = [site for site in plant.clouds if draft.free_in(cloud_pool(plant, site))]
    return min([gpu_hour_usd(draft.readings, plant, site) for site in free], default=math.inf)


def latest_start(job: Job, policy: Policy) -> float:
    """When a job must start to be in time if it takes as long as it may; infinite where nobody can say."""
    deadline_at, seconds = job.request.deadline_at, job.remainder.max_duration_seconds
    if deadline_at is None or seconds is None:
        return math.inf
    return deadline_at - seconds - policy.bursting.margin


def _is_worth_renting(job: Job, at: float) -> bool:
    """Whether a job may still be in time: who is too late by now would only take a machine from others.

    One that has done a part of its work may be quicker than it says; so may one whose longest never fitted.
    """
    deadline_at, seconds = job.request.deadline_at, job.remainder.max_duration_seconds
    if deadline_at is None or seconds is None or at >= deadline_at:
        return False
    return at + seconds <= deadline_at or bool(job.past) or job.submitted_at + seconds > deadline_at


def own_score(draft: Snapshot, policy: Policy, job: Job) -> float:
    """What the cheapest of our own pools scores that could ever take a job; infinite where none could."""
    request = job.remainder
    gpus = _gpus_of_pools(draft.plant)
    costs = [cost for cost, pool in pools_for(draft.plant, policy, request) if gpus[pool] >= request.gpus]
    if not costs or judge_ever(draft, policy, request):
        return math.inf
    return costs[0] * compared_hours(request)


def _in_line(draft: Snapshot, policy: Policy) -> list[Job]:
    """Jobs that wait and may burst: by class, then the more urgent, then who came first."""
    found = []
    for _, queue in draft.queues:
        if not may_burst(draft.jobs[queue[0][2]].request, policy):  # all of one shape may, or none
            continue
        for _, _, job_id in queue:
            job = draft.job(job_id)
            if job.state is JobState.WAITING and when_ready(job, policy) <= draft.at:
                found.append(job)

    def order(job: Job) -> tuple[float, tuple[float, float, str]]:
        known = policy.classes.get(job.request.scheduling_class)
        return (-known.priority if known is not None else 0.0, waiting_key(job))

    return sorted(found, key=order)


def choose_burst(
    draft: Snapshot, policy: Policy, job: Job, found: list[Terms]
) -> tuple[Choice, Terms] | None:
    """A place in one of these regions, where the job may run at all and its class may hold more."""
    request = job.remainder
    permission = judge_permission(draft, request, policy)
    permission += [each for each in judge_class(draft, policy, request) if each.rule != "class.kept_free"]
    if not all(verdict.allows for verdict in permission):
        return None
    chosen = choose_cloud(draft, policy, request, found)
    if chosen is None:
        return None
    return Choice(chosen[0].place, (*permission, *chosen[0].verdicts)), chosen[1]


def _begin(draft: Snapshot, policy: Policy, job: Job, found: list[Terms], why: str, burst: Burst) -> None:
    chosen = choose_burst(draft, policy, job, found)
    if chosen is None:
        return
    choice, terms = chosen
    action = next_action(
        job, ActionKind.START, place=choice.place, rung=-1, because=f"{why}: {terms.site}, {terms.say()}"
    )
    draft.issue(action)
    burst.actions.append(action)
    told = {verdict.rule: verdict for verdict in judge_terms(terms, job.request, why)}
    burst.verdicts += [replace(told.get(each.rule, each), job=job.id) for each in choice.verdicts]


@lru_cache(maxsize=8)
def _gpus_of_pools(plant: Plant) -> tuple[int, ...]:
    gpus = [0] * len(plant.pools)
    for spot in plant.spots:
        gpus[spot.pool] += spot.node.gpus
    return tuple(gpus)
