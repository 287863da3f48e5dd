"""The decision: what to do now, given all that is true. Pure: the same snapshot gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wattline.policy.admitting.admission import admit
from wattline.policy.admitting.enforcing import enforce
from wattline.policy.admitting.recall import recall
from wattline.policy.explaining.saturation import bound_queues
from wattline.policy.giving_way.attention import next_unread_at
from wattline.policy.giving_way.ladder import choose_elsewhere, respond
from wattline.policy.giving_way.reclaiming import leave_reclaimed
from wattline.policy.naming import next_action
from wattline.policy.placing.waiting import Ends
from wattline.policy.scaling.bursting import burst_cheaper, burst_late
from wattline.policy.scaling.resizing import resize
from wattline.policy.scaling.scaling import answer_seconds, scale
from wattline.policy.shifting.shifting import shift_hours
from wattline.policy.watts.appetite import LATE_SECONDS
from wattline.policy.watts.sharing_power import share_power
from wattline.policy.watts.staggering import stagger_of
from wattline.spec.ladder import Rung, RungKind
from wattline.spec.policy import Policy
from wattline.state import MIGRATE, Action, ActionKind, Decision, JobState, Snapshot, Verdict

_MOST_TRIES = 3


class _Stage(Protocol):
    """What each stage of a decision comes to."""

    @property
    def actions(self) -> Sequence[Action]: ...

    @property
    def verdicts(self) -> Sequence[Verdict]: ...

    @property
    def looks(self) -> Sequence[float]: ...


def decide(snapshot: Snapshot, policy: Policy) -> Decision:
    """Heed people, ask again what was not answered, leave what is taken back, enforce rules, relieve
    pressure, share power, shift, bring back, admit, resize, scale: in this order. Who is better off in a
    cloud goes there before our own halls are filled, who would come too late in them after it.

    Relief comes before admission so that nothing starts on headroom that is about to be needed.
    """
    snapshot.check()
    draft = snapshot.copy()
    heeded, refused = heed(draft, policy)
    repeated, deadlines = ask_again(draft, policy)
    stages: list[_Stage] = []
    if draft.reclaims:
        stages.append(leave_reclaimed(draft, policy))
    if policy.enforces:
        stages.append(enforce(draft, policy))
    stagger = stagger_of(draft, policy)
    response = respond(draft, policy, stagger.lift if stagger is not None else None)
    stages.append(response)
    opened: set[int] = set()  # pools where caps were lowered to make room
    if policy.power_sharing.is_on:
        shared = share_power(draft, policy, {action.job for action in response.actions}, stagger)
        stages.append(shared)
        opened.update(shared.opened)
    elif stagger is not None:
        response.actions += stagger.raise_soft()
    shift = None
    if policy.shifting.is_on:
        shifted = shift_hours(draft, policy)
        stages.append(shifted)
        shift = shifted.shift
    recalled = recall(draft, policy, stagger)
    stages.append(recalled)
    opened.update(recalled.opened)
    burst: list[Action] = []
    if draft.plant.clouds:
        cheaper = burst_cheaper(draft, policy)
        stages.append(cheaper)
        burst += cheaper.actions
    admission = admit(draft, policy, opened, shift, stagger)
    stages.append(admission)
    reservations = [*admission.reservations]
    if draft.plant.clouds:
        late = burst_late(draft, policy)
        stages.append(late)
        burst += late.actions
        gone = {action.job for action in late.actions}  # what was said of their waiting is void
        admission.verdicts = [verdict for verdict in admission.verdicts if verdict.job not in gone]
        admission.stuck = [job_id for job_id in admission.stuck if job_id not in gone]
    if policy.resizing is not None and draft.elastic:
        resized = resize(draft, policy, {reservation.job for reservation in reservations}, shift)
        stages.append(resized)
        reservations += resized.reservations
    if policy.bounds_queues and draft.newcomers:
        bound_queues(draft, policy, admission, burst)
    if policy.scaling is not None:
        told = (*recalled.verdicts, *admission.verdicts)
        stages.append(scale(draft, policy, (*recalled.actions, *admission.actions), told, shift))
    if draft.is_anybody_waiting:
        Ends.of(draft).keep_up(draft)  # whoever asks why it waits need not put them in order
    draft.derived = None  # it refers to the draft: together they would wait for the collector
    actions, looks = [*heeded, *repeated], [*deadlines, *refused.values()]
    verdicts: list[Verdict] = []
    for stage in stages:
        actions += stage.actions
        verdicts += stage.verdicts
        looks += stage.looks
    if stagger is not None:
        looks += stagger.looks
    if policy.power_sharing.is_on and admission.actions:  # what they draw is known once meters have read it
        looks.append(snapshot.at + LATE_SECONDS)
    asked = any(action.kind is not ActionKind.REFUSE for action in actions)
    return Decision(
        at=snapshot.at,
        actions=tuple(actions),
        verdicts=tuple(verdicts),
        stuck=tuple(admission.stuck),
        reservations=tuple(reservations),
        given_up=tuple(admission.given_up),
        unsure=tuple(admission.unsure),
        eased=(*response.eased, *recalled.eased),
        pressed=(*response.pressed, *recalled.pressed),
        restless=tuple(dict.fromkeys((*refused, *response.restless))),
        revisit_at=min(looks) if looks else None,
        answer_by=snapshot.at + policy.thresholds.acknowledge_within if asked else None,
        unread_at=next_unread_at(draft, policy.thresholds.reading_max_age),
    )


def heed(draft: Snapshot, policy: Policy) -> tuple[list[Action], dict[str, float]]:
    """Do what people asked of running jobs; their word wins over the policy's.

    Also the jobs where that has just failed, and when to ask them again.
    """
    actions: list[Action] = []
    refused: dict[str, float] = {}
    jobs = draft.jobs
    asked = [job_id for job_id in (*draft.restless, *draft.changed) if jobs[job_id].asked]
    for job_id in sorted(set(asked)) if asked else ():
        job = draft.job(job_id)
        if job.state is not JobState.RUNNING:
            continue
        # A running job has been so since it started, or since it could not be made to leave.
        again_at = job.since + policy.thresholds.settle
        if job.since != job.started_at and draft.at < again_at:
            refused[job_id] = again_at
            continue
        place = None
        if job.asked.startswith(MIGRATE):
            to = job.asked.removeprefix(f"{MIGRATE} to ") if job.asked != MIGRATE else "any"
            choice = choose_elsewhere(draft, policy, job, Rung(kind=RungKind.MIGRATE, to=to))
            if choice is None:  # it runs on where it is until another site takes it
                refused[job_id] = draft.at + policy.thresholds.settle
                continue
            place = choice.place
        pausing = place is not None or (job.asked == "pause" and job.request.checkpoints)
        kind = ActionKind.PAUSE if pausing else ActionKind.STOP
        action = next_action(job, kind, because=f"asked to {job.asked}", returns_to=place)
        draft.issue(action)
        actions.append(action)
    return actions, refused


def ask_again(draft: Snapshot, policy: Policy) -> tuple[list[Action], list[float]]:
    """Repeat actions that nobody answered in time; the same id, so doing it twice does it once.

    An attempt that does not answer is stopped in the end, and asked to until it says that it has ended; the
    job goes on from its checkpoint.
    """
    actions, deadlines = [], []
    for flight in draft.flights.values():
        if flight.action.node:
            deadline = flight.issued_at + answer_seconds(draft, flight.action, policy)
            if draft.at < deadline:
                deadlines.append(deadline)
            else:
                actions.append(flight.action)
            continue
        job = draft.job(flight.action.job)
        if draft.agent_of(job) is not None:
            continue  # its agent fetches what it has not answered, and asks again itself
        # A stop that failed has just been answered: give it as long before the next.
        deadline = max(flight.issued_at, job.since) + policy.thresholds.acknowledge_within
        stopping = flight.action.kind is ActionKind.STOP
        if job.state is JobState.STOPPING and not stopping:
            continue  # overtaken: it must not be done after the stop
        if draft.at < deadline:
            deadlines.append(deadline)
        elif stopping or flight.tries < _MOST_TRIES:
            actions.append(flight.action)
        else:
            because = f"{flight.action.kind} was not answered {flight.tries} times"
            stop = next_action(job, ActionKind.STOP, because=because, lost=True)
            draft.issue(stop)
            actions.append(stop)
    return actions, deadlines
