"""Widths: on how many GPUs does an elastic job begin, where it does not fit as it was asked for?

What fits at one width is taken to fit at each that is less: where not even the least does, no other is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.judging import dominant, judge_request
from wattline.policy.placing.offering import Option, is_carried
from wattline.policy.placing.placement import Choice
from wattline.spec.elastic import Resizing
from wattline.spec.policy import Policy
from wattline.state import Elastic, Job, Outcome, Place, Snapshot, Verdict, compared_hours, seconds_left
from wattline.units import SECONDS_PER_HOUR

Found = TypeVar("Found")


def elastic_of(job: Job) -> Elastic:
    assert job.request.elastic is not None
    return job.request.elastic


def pool_of(draft: Snapshot, job: Job) -> int:
    assert job.place is not None
    return draft.plant.pool_of(job.place.nodes[0][0])


def rested_at(job: Job, resizing: Resizing) -> float:
    """From when on it may be resized: every width is kept for a while."""
    return (job.since if job.started_at is None else job.started_at) + resizing.least_time


def left_seconds(job: Job, at: float) -> float | None:
    """How long it will still run as it is: by its steps, else as declared, else as long as it has so far."""
    began_at = job.started_at
    if began_at is None:
        return None
    first = job.past[-1].step if job.past else 0
    if job.total and job.step > first and at > began_at:
        return (at - began_at) * max(0, job.total - job.step) / (job.step - first)
    declared = seconds_left(job)
    return at - (job.first_started_at or began_at) if declared is None else began_at + declared - at


def widest(widths: Sequence[int], find: Callable[[int], Found | None]) -> Found | None:
    """What is found at the widest that does; None where there is nothing at the first of them either."""
    found = find(widths[0]) if widths else None
    if found is None:
        return None
    low, high = 0, len(widths)
    while high - low > 1:
        middle = (low + high) // 2
        better = find(widths[middle])
        if better is None:
            high = middle
        else:
            low, found = middle, better
    return found


def begin_narrower(job: Job, choice: Choice, judge: Callable[[Job], Choice]) -> tuple[Job, Choice]:
    """The job at the widest width below the asked one that has a place; as it was, where none has.

    Who could never have what it asked for waits for less, where that may come.
    """
    elastic, least = elastic_of(job), job.narrowest
    at_least = judge(least)
    if at_least.place is None:
        reason = dominant(choice.verdicts)
        never = reason is not None and reason.outcome is Outcome.REFUSE
        return (least, at_least) if never else (job, choice)

    def find(gpus: int) -> tuple[Job, Choice] | None:
        one = job.at_width(gpus)
        found = at_least if gpus == elastic.least else judge(one)
        return None if found.place is None else (one, found)

    found = widest(range(elastic.least, job.request.gpus, elastic.step), find)
    if found is None:
        return job, choice
    begun, fitting = found
    return begun, Choice(fitting.place, (*fitting.verdicts, judge_start(begun)))


def wait_seconds(draft: Snapshot, head: Job, pools: Collection[int]) -> float:
    """How long it would wait for others to leave, if they leave as they are expected to and it is next."""
    wanted, waits = head.request.gpus, math.inf
    for pool in sorted(pools):
        there = [job for job in map(draft.job, draft.holding) if job.place and pool_of(draft, job) == pool]
        leave = sorted([(left_seconds(job, draft.at) or 0.0, job.request.gpus) for job in there])
        free = draft.free_in(pool)
        for seconds, gpus in leave:
            free += gpus
            if free >= wanted:
                waits = min(waits, seconds)
                break
    return waits


def judge_patience(draft: Snapshot, policy: Policy, job: Job, begun: Job) -> Verdict | None:
    """Why a job that could begin narrower had better wait for all it asked for; None: it begins.

    It waits where it would end sooner, if others leave as they are expected to. A place that was kept for it
    is taken as it is, and nobody waits for longer than anybody should be overtaken.
    """
    if policy.resizing is None or policy.resizing.begin == "at_once" or job.id in draft.reservations:
        return None
    if policy.sharing.patience is not None and draft.at >= job.since + policy.sharing.patience:
        return None
    pools = {pool for _, pool in pools_for(draft.plant, policy, job.remainder)}
    longer_seconds = compared_hours(begun.remainder) - compared_hours(job.remainder)
    longer_seconds *= SECONDS_PER_HOUR
    waits_seconds = wait_seconds(draft, job, pools)
    if longer_seconds <= waits_seconds:
        return None
    return Verdict(
        rule="resizing.patience",
        subject=job.request.phase,
        outcome=Outcome.WAIT,
        job=job.id,
        numbers={
            "free_gpus": float(begun.request.gpus),
            "asked_gpus": float(job.request.gpus),
            "longer_seconds": longer_seconds,
            "wait_seconds": waits_seconds,
        },
        say="it ends sooner if it waits for all it asked for",
        change="resizing.begin: at_once in the policy",
    )


def judge_start(job: Job) -> Verdict:
    """What it means that a job begins on fewer GPUs than it asked for."""
    elastic = elastic_of(job)
    return Verdict(
        rule="resizing.start",
        subject=job.request.phase,
        outcome=Outcome.ALLOW,
        job=job.id,
        numbers={
            "given_gpus": float(job.request.gpus),
            "asked_gpus": float(elastic.gpus),
            "speed_fraction": 1.0 / job.request.speed_at(elastic.gpus),
        },
        say="narrower than asked: all of it has no place now",
        change="it grows when there is room",
    )


def judge_narrower(draft: Snapshot, policy: Policy, job: Job, choice: Choice) -> Choice:
    """A place at the widest width that has one; `choice` is what was found at the asked one."""
    near = home_of(draft, job)
    begun, found = begin_narrower(job, choice, lambda one: judge_request(draft, policy, one.remainder, near))
    patience = judge_patience(draft, policy, job, begun) if found.place is not None else None
    return found if patience is None else Choice(None, (patience,))


def offer_narrower(snapshot: Snapshot, policy: Policy, job: Job, choice: Choice) -> tuple[Option, ...]:
    """Fewer GPUs, for a job that could run on them where the policy resizes nobody."""
    if job.request.elastic is None or policy.resizing is not None:
        return ()
    place = judge_narrower(snapshot, policy, job, choice).place
    if place is None or not is_carried(snapshot, policy, job.at_width(place.gpus).remainder, place):
        return ()
    option = Option(
        change=f"ask for {place.gpus} GPUs, at {place.site}",
        starts_at=snapshot.at,
        cost_delta_usd=None,  # how much longer it takes then is its owner's word
        brief=f"with {place.gpus} of {job.request.gpus} GPUs",
        fields={"resources.gpus": str(place.gpus)},
    )
    return (option,)


def return_resized(draft: Snapshot, policy: Policy, job: Job) -> Choice | None:
    """The place that was meant for it when it was asked to leave; None where it cannot be had any more."""
    place = job.returns_to
    assert place is not None
    if any(draft.is_down(draft.plant.node_number[node]) for node, _ in place.nodes):
        return None
    return Choice(place, ()) if is_carried(draft, policy, job.remainder, place) else None


def part_of(place: Place, gpus: int, free: Callable[[str], int] | None = None) -> Place | None:
    """So many of the GPUs of a place, on as few of its nodes as may be; None where fewer are free."""
    there = [(node, own if free is None else min(own, free(node))) for node, own in place.nodes]
    taken: dict[str, int] = {}
    for node, most in sorted(there, key=lambda one: -one[1]):
        taken[node] = min(most, gpus)
        gpus -= taken[node]
    if gpus:
        return None
    return Place(place.site, tuple((node, taken[node]) for node, _ in place.nodes if taken[node]))
