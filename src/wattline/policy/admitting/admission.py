"""Admission: what may start now, what waits and for what, and what can never fit?"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

import msgspec

from wattline.policy.admitting.securing import (
    MOST_TRIED,
    Kept,
    ask_to_make_way,
    fill_in,
    next_securing,
    pools_kept,
    reserve_for_overtaken,
    sort_out,
)
from wattline.policy.admitting.trying import Admission, try_one
from wattline.policy.headroom.loosening import Loosened
from wattline.policy.permitting.readiness import when_ready
from wattline.policy.shifting.shifting import Shift
from wattline.policy.turns.fairness import Fairness
from wattline.policy.turns.reserving import lost_at
from wattline.policy.turns.turns import Head, Turns
from wattline.policy.watts.staggering import Stagger
from wattline.policy.watts.waiting_heads import start_fractions
from wattline.spec.policy import Policy
from wattline.state import (
    Action,
    Job,
    JobState,
    Line,
    Queue,
    Reservation,
    Snapshot,
    waiting_key,
    week_ends_at,
)

replace = msgspec.structs.replace


def admit(
    draft: Snapshot,
    policy: Policy,
    opened: Collection[int] = (),
    shift: Shift | None = None,
    stagger: Stagger | None = None,
) -> Admission:
    """Go through the waiting jobs, the most urgent first; each that fits takes its place at once.

    Those who have a place reserved come before all others. In pools that were `opened`, caps were lowered to
    make room.
    """
    admission = Admission(shift=shift, stagger=stagger)
    standing: list[Reservation] = []
    if draft.reservations:
        standing, admission.given_up = sort_out(draft, policy)
        opened = {*opened, *pools_kept(draft, admission.given_up)}
    loosened = _loosened(draft, policy, opened)
    fairness = Fairness(draft, policy) if policy.teams else None
    kept = Kept(draft)
    for reservation in standing:
        _keep_reservation(draft, policy, reservation, loosened, kept, admission)
    is_time = draft.at >= next_securing(draft.decided_at, policy)
    # Who has just come was not overtaken yet.
    if is_time and policy.sharing.patience is not None and draft.waiting_count > draft.newcomer_count:
        _reserve(draft, policy, fairness, kept, admission)
    _go_through(draft, policy, loosened, fairness, admission)
    if kept.latest_start > draft.at:
        may_go = partial(_may_go, draft, policy, shift=shift)
        by_standing = fairness.standing if fairness is not None else None
        admission.actions += fill_in(draft, policy, kept, by_standing, may_go, stagger)
    if draft.waiting_count > len(admission.actions):
        _look_again(draft, policy, admission)
        if is_time and policy.sharing.patience is not None:
            admission.looks.append(draft.at + policy.sharing.patience)
    if policy.preempts and draft.is_anybody_waiting:
        admission.looks.append(next_securing(draft.at, policy))
        if is_time or draft.has_newcomers:
            _ask_to_make_way(draft, policy, fairness or Fairness(draft, policy), admission)
    if stagger is not None:
        admission.stuck, unsure = stagger.unstick(admission.stuck)
        admission.unsure += unsure
    return admission


def _go_through(
    draft: Snapshot, policy: Policy, loosened: Loosened, fairness: Fairness | None, admission: Admission
) -> None:
    stuck = draft.stuck

    def may_go(line: Line) -> bool:
        return line.shape not in stuck or loosened.may_fit_line(line)

    turns = Turns(draft, policy, fairness.standing if fairness is not None else None, may_go)
    failed: set[object] = set()  # shapes of which one was tried: those of other teams would fare no better
    while (head := turns.next()) is not None:
        job = draft.job(head.job_id)
        if head.is_stuck and not loosened.may_fit_line(head.line):  # others may have taken what there was
            continue
        if fairness is not None and head.line.shape in failed:
            continue
        # Who has a place reserved was tried, and who went to a cloud waits no longer.
        if job.state is not JobState.WAITING or _was_tried(draft, job.id, admission):
            turns.put_back(head)
            continue
        head.pools = loosened.pools(job.request) if head.is_stuck else None
        issued = len(admission.actions)
        if try_one(draft, policy, job, head, admission):
            if _take(loosened, admission.actions[issued:]) and fairness is not None:
                fairness.take(job.request.project, draft.job(job.id).request.gpus)
            if not turns.put_back(head) and head.is_stuck:
                admission.unsure.append(head.line.queue[0][2])  # there may be room now, and nobody took it
        elif fairness is not None:
            failed.add(head.line.shape)


def _take(loosened: Loosened, issued: Iterable[Action]) -> bool:
    """Whether somebody took a place."""
    places = [action.place for action in issued if action.place is not None]
    for place in places:
        loosened.take(place.site)
    return bool(places)


def _was_tried(draft: Snapshot, job_id: str, admission: Admission) -> bool:
    """Whether a job has a place reserved, and so came before all others."""
    return job_id in draft.reservations and job_id not in admission.given_up


def _keep_reservation(
    draft: Snapshot,
    policy: Policy,
    reservation: Reservation,
    loosened: Loosened,
    kept: Kept,
    admission: Admission,
) -> None:
    """Start what has a place reserved if it fits by now; else keep what is free of that place."""
    job = draft.job(reservation.job)
    line = Line(job.remainder.shape, job, Queue([waiting_key(job)]))
    head = Head(line, line.shape in draft.stuck)
    head.pools = loosened.pools(job.request) if head.is_stuck else None
    if head.pools is None or head.pools:
        issued = len(admission.actions)
        try_one(draft, policy, job, head, admission)
        _take(loosened, admission.actions[issued:])
    if draft.job(job.id).state is not JobState.WAITING:
        loosened.open(pools_kept(draft, [job.id]))  # it may have found another place than the one kept
        return
    kept.lay(reservation)
    ends_at = lost_at(reservation, policy)
    if ends_at is not None:
        admission.looks.append(ends_at)


def _reserve(
    draft: Snapshot, policy: Policy, fairness: Fairness | None, kept: Kept, admission: Admission
) -> None:
    """Keep a place from now on for whoever was overtaken for too long; before others take what is free."""
    if len(draft.reservations) >= policy.sharing.reservations:
        return
    in_line = _in_line(draft, policy, fairness, admission.shift)
    for reservation in reserve_for_overtaken(draft, policy, in_line, admission.looks):
        kept.lay(reservation)
        admission.reservations.append(reservation)


def _ask_to_make_way(draft: Snapshot, policy: Policy, fairness: Fairness, admission: Admission) -> None:
    in_line = _in_line(draft, policy, fairness, admission.shift)
    for reservation, actions in ask_to_make_way(draft, policy, fairness, in_line):
        admission.actions += actions
        admission.reservations.append(reservation)


def _in_line(draft: Snapshot, policy: Policy, fairness: Fairness | None, shift: Shift | None) -> list[Job]:
    """The first of each line that still waits and has nothing reserved, in the order in which they go."""
    standing = fairness.standing if fairness is not None and policy.teams else None
    turns = Turns(draft, policy, standing, lambda _: True)
    found: list[Job] = []
    while len(found) < MOST_TRIED and (head := turns.next()) is not None:
        job = draft.job(head.job_id)
        is_waiting = job.state is JobState.WAITING and job.id not in draft.reservations
        if is_waiting and _may_go(draft, policy, job, shift):
            found.append(job)
    return found


def _may_go(draft: Snapshot, policy: Policy, job: Job, shift: Shift | None) -> bool:
    """Whether a job wants to start now: it is not waiting after a failure, nor held for better hours."""
    return when_ready(job, policy) <= draft.at and (shift is None or shift.judge(job) is None)


def _loosened(draft: Snapshot, policy: Policy, opened: Collection[int]) -> Loosened:
    """Where something has more room than at the last decision, or was opened in this one."""
    fraction = start_fractions(draft, policy)[-1] if policy.power_sharing.is_on else 1.0
    pools = draft.loosened_pools(policy.thresholds.reading_max_age)
    return Loosened(draft, policy, sorted({*pools, *opened}) if opened else pools, fraction)


def _look_again(draft: Snapshot, policy: Policy, admission: Admission) -> None:
    """When somebody who waits may be better off though nothing else happens."""
    if policy.teams:  # what they have used counts no more
        admission.looks.append(week_ends_at(draft.at))
    for job_id in draft.retrying:
        ready_at = when_ready(draft.jobs[job_id], policy)
        if ready_at > draft.at:
            admission.looks.append(ready_at)
