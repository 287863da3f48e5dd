"""Resizing: which running jobs go on with fewer GPUs so that others may run, and which with more?

A resize is a pause that knows where the job goes on: it saves, leaves, and comes back at another width. Who
waits makes jobs narrower (`making_room.py`); where nobody waits, jobs become wider if that saves more time
than it takes.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import msgspec

from wattline.policy.naming import next_action
from wattline.policy.permitting.pools import pools_for
from wattline.policy.permitting.readiness import when_ready
from wattline.policy.placing.placement import choose_place
from wattline.policy.placing.price import save_seconds
from wattline.policy.scaling.making_room import find_room, hold, price
from wattline.policy.scaling.widths import elastic_of, left_seconds, pool_of, rested_at, widest
from wattline.policy.shifting.shifting import Shift
from wattline.policy.turns.fairness import Fairness
from wattline.policy.turns.reserving import keep_free, may_run
from wattline.policy.turns.turns import Turns
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Job, JobState, Outcome, Place, Reservation, Snapshot, Verdict

# Of those who wait so many are looked at, the first in line.
_MOST_HEADS = 8


class Resized(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    reservations: list[Reservation] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)


def resize(draft: Snapshot, policy: Policy, reserved: Collection[str], shift: Shift | None) -> Resized:
    """Make narrower who others wait for, and wider who may; asked where elastic jobs run.

    `reserved` are jobs for which places were kept in this decision.
    """
    assert policy.resizing is not None
    result = Resized()
    able = [job for job in (draft.job(job_id) for job_id in sorted(draft.elastic)) if _is_able(draft, job)]
    if not able:
        return result
    fairness = Fairness(draft, policy)
    heads = _in_line(draft, policy, fairness, {*draft.reservations, *reserved}, shift)
    for head in heads:
        _make_room(draft, policy, fairness, head, able, result)
    if not (draft.reservations or reserved or result.reservations or _is_anybody_away(draft)):
        _grow(draft, policy, heads, able, result)
    return result


def _is_able(draft: Snapshot, job: Job) -> bool:
    """Whether it can save and leave now, and nothing else is asked of it."""
    is_steady = job.state is JobState.RUNNING and job.rung < 0 and not job.asked
    return is_steady and job.request.checkpoints and not draft.flying(job.id)


def _is_anybody_away(draft: Snapshot) -> bool:
    """Whether somebody who left will want its place back: what is free now may be its own."""
    if any(draft.job(job_id).state is JobState.PAUSING for job_id in draft.elastic):
        return True
    paused = [draft.job(job_id) for job_id in draft.paused]
    return any(job.state is JobState.PAUSED and job.asked != "pause" for job in paused)


def _in_line(
    draft: Snapshot, policy: Policy, fairness: Fairness, reserved: Collection[str], shift: Shift | None
) -> list[Job]:
    """The first of each line that still waits for nothing but a place, in the order in which they go."""
    turns = Turns(draft, policy, fairness.standing if policy.teams else None, lambda _: True)
    found: list[Job] = []
    while len(found) < _MOST_HEADS and (head := turns.next()) is not None:
        job = draft.job(head.job_id)
        if job.state is not JobState.WAITING or job.id in reserved:
            turns.put_back(head)
            continue
        wants = when_ready(job, policy) <= draft.at and (shift is None or shift.judge(job) is None)
        if wants and may_run(draft, policy, job.narrowest):
            found.append(job)
    return found


def _make_room(
    draft: Snapshot, policy: Policy, fairness: Fairness, head: Job, able: list[Job], result: Resized
) -> None:
    assert policy.resizing is not None
    opening = find_room(draft, policy, fairness, head, able, result.looks)
    if opening is None:
        return
    place, narrower = opening
    for one, to in narrower:
        lost = price(one, to.gpus, policy.resizing)
        action = next_action(
            one,
            ActionKind.PAUSE,
            returns_to=to,
            lost_gpu_seconds=lost,
            because=f"goes on with {to.gpus} of {one.request.gpus} GPUs: makes room for {head.id}",
        )
        draft.issue(action)
        result.actions.append(action)
        fairness.take(one.request.project, to.gpus - one.request.gpus)
        result.verdicts.append(
            Verdict(
                rule="resizing.shrink",
                subject=head.id,
                outcome=Outcome.WARN,
                job=one.id,
                numbers={
                    "held_gpus": float(one.request.gpus),
                    "given_gpus": float(to.gpus),
                    "asked_gpus": float(elastic_of(one).gpus),
                    "speed_fraction": one.request.speed_at(to.gpus),
                    "lost_gpu_seconds": lost,
                },
                say=f"{head.id} waits, and fits beside it then",
                change="it grows when there is room",
            )
        )
    reservation = Reservation(
        job=head.id,
        place=place,
        made_at=draft.at,
        starts_at=draft.at + max(save_seconds(one) for one, _ in narrower),
        because=f"{len(narrower)} jobs go on with fewer GPUs",
    )
    keep_free(draft, reservation)
    result.reservations.append(reservation)


def _grow(draft: Snapshot, policy: Policy, heads: list[Job], able: list[Job], result: Resized) -> None:
    assert policy.resizing is not None
    wanted = {pool for head in heads for _, pool in pools_for(draft.plant, policy, head.remainder)}
    running = [draft.job(known.id) for known in able]
    # First who has less than it asked for, then who has longest to go.
    order = partial(_owed_first, at=draft.at)
    for job in sorted(running, key=order):
        if job.request.gpus >= elastic_of(job).most or pool_of(draft, job) in wanted:
            continue
        until = rested_at(job, policy.resizing)
        if draft.at < until:
            result.looks.append(until)
            continue
        if len(result.actions) >= policy.thresholds.jobs_per_response:
            result.looks.append(draft.at + policy.thresholds.settle)
            return
        _grow_one(draft, policy, job, result)


def _owed_first(job: Job, at: float) -> tuple[bool, float, str]:
    return (job.request.gpus >= elastic_of(job).gpus, -(left_seconds(job, at) or 0.0), job.id)


def _grow_one(draft: Snapshot, policy: Policy, job: Job, result: Resized) -> None:
    assert job.place is not None
    assert policy.resizing is not None
    elastic, gpus = elastic_of(job), job.request.gpus
    free = draft.free_in(pool_of(draft, job))
    away = save_seconds(job) + policy.resizing.restart
    left = left_seconds(job, draft.at)
    most = min(elastic.most, gpus + free)
    if left is None or most < gpus + elastic.step:
        return
    if left * (1.0 - 1.0 / job.request.speed_at(most)) < policy.resizing.least_gain * away:
        return
    after = draft.copy()
    hold(after, job, job.place, -1)
    site = job.place.site

    def find(width: int) -> Place | None:
        one = job.at_width(width)
        if not may_run(after, policy, one):
            return None
        return choose_place(after, policy, one.remainder, near=site, sites=[site], explain=False).place

    to = widest(range(gpus + elastic.step, most + 1, elastic.step), find)
    saved = 0.0 if to is None else left * (1.0 - 1.0 / job.request.speed_at(to.gpus))
    if to is None or saved < policy.resizing.least_gain * away:
        return
    action = next_action(
        job,
        ActionKind.PAUSE,
        returns_to=to,
        lost_gpu_seconds=gpus * away,
        because=f"goes on with {to.gpus} GPUs instead of {gpus}: they are free",
    )
    draft.issue(action)
    hold(draft, job, job.place, -1)
    hold(draft, job, to)
    result.actions.append(action)
    result.verdicts.append(
        Verdict(
            rule="resizing.grow",
            subject=job.request.phase,
            outcome=Outcome.ALLOW,
            job=job.id,
            numbers={
                "held_gpus": float(gpus),
                "given_gpus": float(to.gpus),
                "asked_gpus": float(elastic.gpus),
                "saved_seconds": saved,
                "away_seconds": away,
                "left_seconds": left,
            },
            say="nobody waits for what is free",
            change="it gives them back when somebody does",
        )
    )
