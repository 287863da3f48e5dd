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
from wattline.policy.headroom.loosening import Loosened
from wattline.policy.naming import next_action
from wattline.policy.permitting.modes import AUTO, with_mode
from wattline.policy.permitting.permission import allowed_models, allowed_regions
from wattline.policy.permitting.reaching import judge_reach
from wattline.policy.permitting.readiness import when_ready
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.judging import changed, dominant, judge_request
from wattline.policy.placing.placement import Choice
from wattline.policy.scaling.widths import begin_narrower, judge_patience
from wattline.policy.shifting.shifting import Shift, is_held_back
from wattline.policy.turns.fairness import Fairness
from wattline.policy.turns.reserving import lost_at
from wattline.policy.turns.turns import Head, Turns
from wattline.policy.watts.staggering import Stagger
from wattline.policy.watts.waiting_heads import start_fractions, start_on_cap
from wattline.spec.policy import Policy
from wattline.state import (
    Action,
    ActionKind,
    Job,
    JobRequest,
    JobState,
    Line,
    Outcome,
    Queue,
    Reservation,
    Snapshot,
    Verdict,
    waiting_key,
    week_ends_at,
)

replace = msgspec.structs.replace


class Admission(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    stuck: list[str] = msgspec.field(default_factory=list)
    unsure: list[str] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)
    reservations: list[Reservation] = msgspec.field(default_factory=list)
    given_up: list[str] = msgspec.field(default_factory=list)
    shift: Shift | None = None  # who is held back for better hours; None: nobody
    stagger: Stagger | None = None  # who begins at once and who later; None: all at once


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
        if _admit_one(draft, policy, job, head, admission):
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
        _admit_one(draft, policy, job, head, admission)
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


def _admit_one(draft: Snapshot, policy: Policy, job: Job, head: Head, admission: Admission) -> bool:
    """Start a job, or say why not. False when others of its shape need not be tried."""
    if draft.at < when_ready(job, policy):
        return True
    stranded = judge_reach(draft, job) if draft.sites else None
    if stranded is not None:
        _tell_waiting(job, (stranded,), admission)
        return True
    mode: tuple[Verdict, ...] = ()
    if job.request.mode == AUTO:
        job, mode = with_mode(draft, policy, job)
    project, seconds = job.request.project, job.remainder.max_duration_seconds or 0.0
    if project in head.broke and seconds >= head.broke[project]:
        return True
    bound = _bounds_of(job.request, policy)
    if bound is not None and bound in head.without:
        return True
    held = admission.shift.judge(job) if admission.shift is not None else None
    if held is not None and is_held_back(job):  # that it would fit was seen before
        _hold_back(job, held, admission)
        return True
    choice, fraction = _judge_at_best(draft, policy, job, head, admission.shift), 1.0
    if choice.place is None and policy.power_sharing.is_on:
        choice, fraction = start_on_cap(draft, policy, job, choice, home_of(draft, job), head.pools)
    if choice.place is None and policy.resizing is not None and job.request.elastic is not None:
        judge = partial(_judge_at_best, draft, policy, head=head, shift=admission.shift)
        begun, choice = begin_narrower(job, choice, judge)
        patience = judge_patience(draft, policy, job, begun) if choice.place is not None else None
        if patience is not None:
            _tell_waiting(job, (patience,), admission)
            return True
        job = begun
    verdicts = tuple(
        [verdict if verdict.job else replace(verdict, job=job.id) for verdict in choice.verdicts]
    )
    if choice.place is not None and held is not None:
        _hold_back(job, held, admission)
        return True
    if choice.place is not None and admission.stagger is not None:
        again = partial(_judge_at_best, draft, policy, job, head, admission.shift)
        paced = admission.stagger.pace(job, choice, fraction, again)
        if paced.waits:
            _tell_waiting(job, paced.verdicts, admission)
            return True
        choice, fraction, verdicts = paced.choice, paced.fraction, paced.verdicts
    if choice.place is not None:
        action = next_action(job, ActionKind.START, place=choice.place, fraction=fraction, rung=-1)
        draft.issue(action)
        admission.actions.append(action)
        admission.verdicts += (*mode, *verdicts)
        return True
    reason = dominant(verdicts)
    if reason is not None and reason.outcome is Outcome.REFUSE:
        action = next_action(job, ActionKind.REFUSE, because=_because(reason))
        admission.actions.append(action)
        admission.verdicts += verdicts
        return True
    if reason is not None and admission.stagger is not None:
        behind = admission.stagger.judge_behind(job, reason)
        if behind:
            _tell_waiting(job, behind, admission)
            return False
    if reason is not None:  # otherwise a part was looked at again, and it is as it was
        if head.pools is None and changed(job, verdicts):  # what was seen of a part tells nothing new
            admission.verdicts += verdicts
        if reason.rule.startswith("class."):  # none of its class is better off
            return False
        if not _is_about_place(verdicts):  # rules and quotas speak of more than the shape
            if not reason.rule.startswith("rule."):
                head.broke[project] = seconds
            return True
    if bound is not None:  # another team may use what this one may not
        head.without.add(bound)
        return True
    admission.stuck.append(job.id)
    return False


def _judge_at_best(draft: Snapshot, policy: Policy, job: Job, head: Head, shift: Shift | None) -> Choice:
    """A place where this hour is best; anywhere, where nobody asks for that or there is none."""
    best = shift.best_pools(job) if shift is not None else None
    if best is not None:
        only = best if head.pools is None else [pool for pool in head.pools if pool in best]
        choice = judge_request(draft, policy, job.remainder, home_of(draft, job), only) if only else None
        if choice is not None and choice.place is not None:
            return choice
    return judge_request(draft, policy, job.remainder, home_of(draft, job), head.pools)


def _tell_waiting(job: Job, verdicts: tuple[Verdict, ...], admission: Admission) -> None:
    """Say why a job that fits does not begin yet, where that is news."""
    if changed(job, verdicts):
        admission.verdicts += verdicts


def _hold_back(job: Job, held: Verdict, admission: Admission) -> None:
    """Let a job that would fit wait for better hours, and look again when the next one begins."""
    assert admission.shift is not None
    admission.looks.append(admission.shift.next_hour_at)
    if changed(job, (held,)):
        admission.verdicts.append(held)


def _bounds_of(
    request: JobRequest, policy: Policy
) -> tuple[frozenset[str] | None, tuple[str, ...] | None] | None:
    """What a job may use, where it is its team that leaves it less than its shape says."""
    team = policy.teams.get(request.project)
    if team is None or not (team.gpu or team.regions):
        return None
    return allowed_models(request, policy), allowed_regions(request, policy)


def _is_about_place(verdicts: tuple[Verdict, ...]) -> bool:
    """Whether something else than a rule or what is left of a quota keeps a job from starting."""
    return any(
        not verdict.allows and not verdict.rule.startswith(("rule.", "quota.", "budget."))
        for verdict in verdicts
    )


def _look_again(draft: Snapshot, policy: Policy, admission: Admission) -> None:
    """When somebody who waits may be better off though nothing else happens."""
    if policy.teams:  # what they have used counts no more
        admission.looks.append(week_ends_at(draft.at))
    for job_id in draft.retrying:
        ready_at = when_ready(draft.jobs[job_id], policy)
        if ready_at > draft.at:
            admission.looks.append(ready_at)


def _because(verdict: Verdict) -> str:
    return f"{verdict.sentence()}; {verdict.change}" if verdict.change else verdict.sentence()
