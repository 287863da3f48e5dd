"""Trying: does one waiting job start now, and if not, what does it wait for?"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import NamedTuple

import msgspec

from wattline.policy.naming import next_action
from wattline.policy.permitting.modes import AUTO, with_mode
from wattline.policy.permitting.permission import allowed_models, allowed_regions
from wattline.policy.permitting.reaching import judge_fetching, judge_reach, sites_out_of_reach
from wattline.policy.permitting.readiness import when_ready
from wattline.policy.placing.homing import home_of
from wattline.policy.placing.judging import changed, dominant, judge_request
from wattline.policy.placing.placement import Choice
from wattline.policy.scaling.widths import begin_narrower, judge_patience
from wattline.policy.shifting.shifting import Shift, is_held_back
from wattline.policy.turns.turns import Head
from wattline.policy.watts.staggering import Stagger
from wattline.policy.watts.waiting_heads import start_on_cap
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Job, JobRequest, Outcome, Reservation, Snapshot, Verdict

replace = msgspec.structs.replace

_Bound = tuple[frozenset[str] | None, tuple[str, ...] | None]
"""Models and regions that a team may use."""


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


def try_one(draft: Snapshot, policy: Policy, job: Job, head: Head, admission: Admission) -> bool:
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
    project, seconds = job.request.project, _most_seconds(job)
    if project in head.broke and seconds >= head.broke[project]:
        return True
    bound = _bounds_of(job.request, policy)
    if bound is not None and bound in head.without:
        return True
    held = admission.shift.judge(job) if admission.shift is not None else None
    if held is not None and is_held_back(job):  # that it would fit was seen before
        _hold_back(job, held, admission)
        return True
    found = _find(draft, policy, job, head, admission.shift)
    far = judge_fetching(draft, job, found.choice.place) if found.choice.place is not None else None
    if far is not None:
        away = sites_out_of_reach(draft, job)
        found = _find(draft, policy, job, _without(draft, head, away), admission.shift)
        if found.choice.place is None:
            admission.looks.append(min(away.values()))
            _tell_waiting(job, (far,), admission)
            return True
    if found.patience is not None:
        _tell_waiting(job, (found.patience,), admission)
        return True
    if found.choice.place is not None and held is not None:
        _hold_back(job, held, admission)
        return True
    if found.choice.place is not None and admission.stagger is not None:
        again = partial(_judge_at_best, draft, policy, found.job, head, admission.shift)
        paced = admission.stagger.pace(found.job, found.choice, found.power_fraction, again)
        if paced.waits:
            _tell_waiting(job, paced.verdicts, admission)
            return True
        found = _Found(found.job, paced.choice, paced.verdicts, paced.fraction)
    place = found.choice.place
    if place is None:
        return _say_why_not(found, head, bound, admission)
    action = next_action(found.job, ActionKind.START, place=place, fraction=found.power_fraction, rung=-1)
    draft.issue(action)
    admission.actions.append(action)
    admission.verdicts += (*mode, *found.verdicts)
    return True


def _without(draft: Snapshot, head: Head, sites: Collection[str]) -> Head:
    """The same, looking at pools of other sites alone."""
    pools = [number for number, (site, _) in enumerate(draft.plant.pools) if site not in sites]
    return replace(head, pools=[pool for pool in pools if head.pools is None or pool in head.pools])


class _Found(NamedTuple):
    """A place and how a job would begin there; or why there is none."""

    job: Job  # at the width at which it begins
    choice: Choice
    verdicts: tuple[Verdict, ...]
    power_fraction: float = 1.0
    patience: Verdict | None = None  # why it had better wait for more than there is


def _find(draft: Snapshot, policy: Policy, job: Job, head: Head, shift: Shift | None) -> _Found:
    """Whole and at full power, else under a cap, else narrower: as far as each is allowed."""
    choice, fraction = _judge_at_best(draft, policy, job, head, shift), 1.0
    if choice.place is None and policy.power_sharing.is_on:
        choice, fraction = start_on_cap(draft, policy, job, choice, home_of(draft, job), head.pools)
    if choice.place is None and policy.resizing is not None and job.request.elastic is not None:
        judge = partial(_judge_at_best, draft, policy, head=head, shift=shift)
        begun, choice = begin_narrower(job, choice, judge)
        patience = judge_patience(draft, policy, job, begun) if choice.place is not None else None
        return _Found(begun, choice, _named(choice, job), fraction, patience)
    return _Found(job, choice, _named(choice, job), fraction)


def _named(choice: Choice, job: Job) -> tuple[Verdict, ...]:
    """What was judged, as said of this job."""
    return tuple([one if one.job else replace(one, job=job.id) for one in choice.verdicts])


def _say_why_not(found: _Found, head: Head, bound: _Bound | None, admission: Admission) -> bool:
    """Refuse what can never fit, else tell what a job waits for, where that is news.

    False when others of its shape need not be tried.
    """
    job, verdicts = found.job, found.verdicts
    reason = dominant(verdicts)
    if reason is not None and reason.outcome is Outcome.REFUSE:
        admission.actions.append(next_action(job, ActionKind.REFUSE, because=_because(reason)))
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
                head.broke[job.request.project] = _most_seconds(job)
            return True
    if bound is not None:  # another team may use what this one may not
        head.without.add(bound)
        return True
    admission.stuck.append(job.id)
    return False


def _most_seconds(job: Job) -> float:
    return job.remainder.max_duration_seconds or 0.0


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


def _bounds_of(request: JobRequest, policy: Policy) -> _Bound | None:
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


def _because(verdict: Verdict) -> str:
    return f"{verdict.sentence()}; {verdict.change}" if verdict.change else verdict.sentence()
