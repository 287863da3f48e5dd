"""The decision: what to do now, given all that is true. Pure: the same snapshot gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from wattline.policy.admitting.admission import admit
from wattline.policy.admitting.enforcing import enforce
from wattline.policy.admitting.recall import Recall, recall
from wattline.policy.admitting.trying import Admission
from wattline.policy.asked import ask_again, heed
from wattline.policy.explaining.saturation import bound_queues
from wattline.policy.giving_way.attention import next_unread_at
from wattline.policy.giving_way.ladder import Response, respond
from wattline.policy.giving_way.reclaiming import leave_reclaimed
from wattline.policy.placing.waiting import Ends
from wattline.policy.scaling.bursting import burst_cheaper, burst_late
from wattline.policy.scaling.resizing import resize
from wattline.policy.scaling.scaling import scale
from wattline.policy.shifting.shifting import shift_hours
from wattline.policy.watts.appetite import LATE_SECONDS
from wattline.policy.watts.sharing_power import share_power
from wattline.policy.watts.staggering import Stagger, stagger_of
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Decision, Reservation, Snapshot, Verdict


class _Stage(Protocol):
    """What each stage of a decision comes to."""

    @property
    def actions(self) -> Sequence[Action]: ...

    @property
    def verdicts(self) -> Sequence[Verdict]: ...

    @property
    def looks(self) -> Sequence[float]: ...


class _Relieved(NamedTuple):
    stages: list[_Stage]
    response: Response
    stagger: Stagger | None  # who may take more power at once, and who later; None: all at once
    opened: Sequence[int]  # pools where caps were lowered to make room


class _Filled(NamedTuple):
    stages: list[_Stage]
    recalled: Recall
    admission: Admission
    reservations: list[Reservation]


def decide(snapshot: Snapshot, policy: Policy) -> Decision:
    """Heed people, ask again what was not answered, relieve, fill.

    Relief comes before filling so that nothing starts on headroom that is about to be needed.
    """
    snapshot.check()
    draft = snapshot.copy()
    heeded, refused = heed(draft, policy)
    repeated, deadlines = ask_again(draft, policy)
    relieved = _relieve(draft, policy)
    filled = _fill(draft, policy, relieved)
    if draft.is_anybody_waiting:
        Ends.of(draft).keep_up(draft)  # whoever asks why it waits need not put them in order
    draft.derived = None  # it refers to the draft: together they would wait for the collector

    actions, verdicts, looks = [*heeded, *repeated], list[Verdict](), [*deadlines, *refused.values()]
    for stage in (*relieved.stages, *filled.stages):
        actions += stage.actions
        verdicts += stage.verdicts
        looks += stage.looks
    if relieved.stagger is not None:
        looks += relieved.stagger.looks
    response, recalled, admission = relieved.response, filled.recalled, filled.admission
    if policy.power_sharing.is_on and admission.actions:  # what they draw is known once meters have read it
        looks.append(snapshot.at + LATE_SECONDS)
    asked = any(action.kind is not ActionKind.REFUSE for action in actions)
    return Decision(
        at=snapshot.at,
        actions=tuple(actions),
        verdicts=tuple(verdicts),
        stuck=tuple(admission.stuck),
        reservations=tuple(filled.reservations),
        given_up=tuple(admission.given_up),
        unsure=tuple(admission.unsure),
        eased=(*response.eased, *recalled.eased),
        pressed=(*response.pressed, *recalled.pressed),
        restless=tuple(dict.fromkeys((*refused, *response.restless))),
        revisit_at=min(looks) if looks else None,
        answer_by=snapshot.at + policy.thresholds.acknowledge_within if asked else None,
        unread_at=next_unread_at(draft, policy.thresholds.reading_max_age),
    )


def _relieve(draft: Snapshot, policy: Policy) -> _Relieved:
    """Leave what is taken back, enforce rules, relieve pressure, share power: in this order."""
    stages: list[_Stage] = []
    if draft.reclaims:
        stages.append(leave_reclaimed(draft, policy))
    if policy.enforces:
        stages.append(enforce(draft, policy))
    stagger = stagger_of(draft, policy)
    response = respond(draft, policy, stagger.lift if stagger is not None else None)
    stages.append(response)
    opened: Sequence[int] = ()
    if policy.power_sharing.is_on:
        shared = share_power(draft, policy, {action.job for action in response.actions}, stagger)
        stages.append(shared)
        opened = shared.opened
    elif stagger is not None:
        response.actions += stagger.raise_soft()
    return _Relieved(stages, response, stagger, opened)


def _fill(draft: Snapshot, policy: Policy, relieved: _Relieved) -> _Filled:
    """Shift, bring back, admit, resize, scale: in this order.

    Who is better off in a cloud goes there before our own halls are filled, who would come too late in them
    after it.
    """
    stages: list[_Stage] = []
    shift, burst = None, list[Action]()
    if policy.shifting.is_on:
        shifted = shift_hours(draft, policy)
        stages.append(shifted)
        shift = shifted.shift
    recalled = recall(draft, policy, relieved.stagger)
    stages.append(recalled)
    if draft.plant.clouds:
        cheaper = burst_cheaper(draft, policy)
        stages.append(cheaper)
        burst += cheaper.actions
    admission = admit(draft, policy, {*relieved.opened, *recalled.opened}, shift, relieved.stagger)
    stages.append(admission)
    if draft.plant.clouds:
        late = burst_late(draft, policy)
        stages.append(late)
        burst += late.actions
        gone = {action.job for action in late.actions}  # what was said of their waiting is void
        admission.verdicts = [verdict for verdict in admission.verdicts if verdict.job not in gone]
        admission.stuck = [job_id for job_id in admission.stuck if job_id not in gone]
    reservations = [*admission.reservations]
    if policy.resizing is not None and draft.elastic:
        resized = resize(draft, policy, {reservation.job for reservation in reservations}, shift)
        stages.append(resized)
        reservations += resized.reservations
    if policy.bounds_queues and draft.newcomers:
        bound_queues(draft, policy, admission, burst)
    if policy.scaling is not None:
        told = (*recalled.verdicts, *admission.verdicts)
        stages.append(scale(draft, policy, (*recalled.actions, *admission.actions), told, shift))
    return _Filled(stages, recalled, admission, reservations)
