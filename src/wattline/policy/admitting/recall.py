"""Recall: when does a paused job come back, and where?"""

from __future__ import annotations

import msgspec

from wattline.policy.admitting.returning import clear_seconds
from wattline.policy.giving_way.ladder import applies, choose_elsewhere
from wattline.policy.giving_way.pressure import judge_pressure
from wattline.policy.giving_way.relief import ladder_of
from wattline.policy.naming import next_action
from wattline.policy.permitting.reaching import judge_reach
from wattline.policy.placing.cloud import offers
from wattline.policy.placing.judging import changed, judge_request
from wattline.policy.placing.placement import Choice, choose_place
from wattline.policy.placing.price import price_rung
from wattline.policy.scaling.bursting import choose_burst
from wattline.policy.scaling.widths import begin_narrower, return_resized
from wattline.policy.watts.staggering import Stagger
from wattline.spec.ladder import RungKind
from wattline.spec.policy import Policy
from wattline.state import Action, ActionKind, Job, Snapshot, Verdict, claim_of

_NOWHERE = Choice(None, ())


class Recall(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    eased: list[str] = msgspec.field(default_factory=list)
    pressed: list[str] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)
    opened: set[int] = msgspec.field(default_factory=set)  # pools with more room than anybody was told of
    stagger: Stagger | None = None  # says who may begin at once; None: all


def recall(draft: Snapshot, policy: Policy, stagger: Stagger | None = None) -> Recall:
    """Bring back what was paused: in place once pressure has gone for good, elsewhere where it may move."""
    result = Recall(stagger=stagger)
    for job_id in draft.paused:
        job = draft.job(job_id)
        if job.asked == "pause":
            continue
        stranded = judge_reach(draft, job) if draft.sites else None
        if stranded is not None:
            _tell(job, Choice(None, (stranded,)), result)
            continue
        if job.rung < 0 or job.returns_to is not None:  # a person let go of it, or said where it goes on
            choice = _look_anywhere(draft, policy, job)
            if choice.place is None and _site(job) in draft.plant.clouds:
                found = offers(draft, policy, job.remainder, job.saved)
                rented = choose_burst(draft, policy, job, found)
                choice = rented[0] if rented is not None else choice
            _begin(draft, job, choice, result)
            continue
        here = _look_at_its_site(draft, policy, job)
        if not _back_in_place(draft, policy, job, here, result):
            _move_on(draft, policy, job, result, fits_here=here.place is not None)
    return result


def _look_anywhere(draft: Snapshot, policy: Policy, job: Job) -> Choice:
    """A place for who may go on at once; for who is being resized, the one that was meant for it."""
    if job.returns_to is not None:
        meant = return_resized(draft, policy, job)
        if meant is not None:
            return meant
        job = msgspec.structs.replace(job, request=job.request.as_asked)
    choice = judge_request(draft, policy, job.remainder, _site(job))
    if choice.place is None and policy.resizing is not None and job.request.elastic is not None:
        _, choice = begin_narrower(
            job, choice, lambda one: judge_request(draft, policy, one.remainder, _site(one))
        )
    return choice


def _look_at_its_site(draft: Snapshot, policy: Policy, job: Job) -> Choice:
    """A place where it was. Once it was told why there is none, it is looked for where there is more room."""
    told = any(not verdict.allows for verdict in job.verdicts)
    max_age = policy.thresholds.reading_max_age
    if told and job.clear_since is None and not draft.is_loosened(_site(job), max_age):
        return _NOWHERE
    choice = choose_place(draft, policy, job.remainder, sites=[_site(job)], explain=not told)
    if choice.place is None and policy.resizing is not None and job.request.elastic is not None:
        _, choice = begin_narrower(
            job,
            choice,
            lambda one: choose_place(draft, policy, one.remainder, sites=[_site(job)], explain=False),
        )
    return choice


def _back_in_place(draft: Snapshot, policy: Policy, job: Job, here: Choice, result: Recall) -> bool:
    """Resume at the same site if it has been good there for long enough."""
    if here.place is None:
        if job.clear_since is not None:
            result.pressed.append(job.id)
            number = draft.plant.site_numbers[_site(job)]
            result.opened.update(draft.plant.pools_of_site[number])  # what was kept for it is free again
        _tell(job, here, result)
        return False
    clear_for = clear_seconds(job, policy.thresholds)
    clear_since = draft.at if job.clear_since is None else job.clear_since
    if job.clear_since is None:
        result.eased.append(job.id)
    if job.clear_since is None or draft.at - clear_since < clear_for:
        result.looks.append(clear_since + clear_for)
        # Kept free until then: otherwise whoever waits would take it, and it would never come back.
        draft.lay(next_action(job, ActionKind.RESUME, place=here.place))
        return False
    _begin(draft, job, here, result)
    return True


def _move_on(draft: Snapshot, policy: Policy, job: Job, result: Recall, *, fits_here: bool) -> None:
    """The pause has lasted as long as its owner allowed: take the next rung, if there is one."""
    ladder = ladder_of(job, policy)
    taken = ladder[job.rung] if job.rung < len(ladder) else None
    if taken is not None and taken.kind is RungKind.PAUSE and draft.at < job.since + taken.amount:
        result.looks.append(job.since + taken.amount)
        return
    first = job.rung if taken is not None and taken.kind is RungKind.MIGRATE else job.rung + 1
    values: dict[str, object] | None = None
    for index in range(first, len(ladder)):
        rung = ladder[index]
        if index != job.rung and rung.when:
            values = values or _pressure_at_its_place(draft, policy, job)
            if not applies(rung, values):
                continue
        if rung.kind is RungKind.MIGRATE:
            choice = choose_elsewhere(draft, policy, job, rung)
            if choice is not None:
                _begin(draft, job, choice, result, lost_gpu_seconds=price_rung(draft, job, rung))
                return
        elif rung.kind is RungKind.STOP and not fits_here:
            action = next_action(job, ActionKind.STOP, rung=index, because="its ladder ends here")
            result.actions.append(action)
            return
    result.looks.append(draft.at + policy.thresholds.settle)


def _pressure_at_its_place(draft: Snapshot, policy: Policy, job: Job) -> dict[str, object]:
    """The room where the job last ran, as it is without it."""
    assert job.place is not None
    return judge_pressure(draft, claim_of(job.request, job.place, draft.plant), policy.thresholds).values()


def _tell(job: Job, choice: Choice, result: Recall) -> None:
    """Say why a job stays paused, where that is news."""
    verdicts = tuple(msgspec.structs.replace(verdict, job=job.id) for verdict in choice.verdicts)
    if verdicts and changed(job, verdicts):
        result.verdicts += verdicts


def _begin(draft: Snapshot, job: Job, choice: Choice, result: Recall, lost_gpu_seconds: float = 0.0) -> None:
    if choice.place is None:
        _tell(job, choice, result)
        return
    fraction = 1.0
    if result.stagger is not None:
        paced = result.stagger.pace(job, choice)
        if paced.choice.place is None:
            _tell(job, Choice(None, paced.verdicts), result)
            return
        choice, fraction = paced.choice, paced.fraction
    assert choice.place is not None
    kind = ActionKind.RESUME if choice.place.site == _site(job) else ActionKind.MIGRATE
    gone = "asked to go on" if job.rung < 0 else "pressure has gone"
    if job.returns_to is not None:
        gone = job.say
    because = f"from {_site(job)} to {choice.place.site}" if kind is ActionKind.MIGRATE else gone
    action = next_action(
        job,
        kind,
        place=choice.place,
        fraction=fraction,
        rung=-1,
        lost_gpu_seconds=lost_gpu_seconds,
        because=because,
    )
    draft.issue(action)
    result.actions.append(action)
    result.verdicts += (msgspec.structs.replace(verdict, job=job.id) for verdict in choice.verdicts)


def _site(job: Job) -> str:
    return job.place.site if job.place is not None else ""
