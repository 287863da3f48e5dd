"""Admission: what may start now, what waits and for what, and what can never fit?"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

import msgspec

from wattline.policy.naming import next_action
from wattline.policy.permission import judge_permission
from wattline.policy.placement import Choice, Where, choose_place, may_ever_fit
from wattline.policy.power import Headroom, headroom_of
from wattline.spec.policy import Policy
from wattline.state import (
    Action,
    ActionKind,
    Ending,
    Job,
    JobRequest,
    Outcome,
    Plant,
    ResourceKind,
    Snapshot,
    State,
    Stopper,
    Stuck,
    Verdict,
    week_ends_at,
)
from wattline.state.claim import taking_of

replace = msgspec.structs.replace

_LONGEST_BACKOFF_SECONDS = 600.0
_MOST_REMEMBERED = 100_000
_MOST_DOUBLINGS = 30  # far beyond the longest backoff, and far below what a float holds


@dataclass(slots=True)
class Admission:
    actions: list[Action] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    stuck: list[Stopper] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)


def admit(draft: Snapshot, policy: Policy) -> Admission:
    """Go through the waiting jobs, the most urgent first; each that fits takes its place at once."""
    admission = Admission()
    heads = []
    for stuck, queue in draft.queues(policy.thresholds.reading_max_age):
        known = policy.classes.get(draft.jobs[queue[0][2]].request.scheduling_class)
        head = _Head(-(known.priority if known else 0.0), queue, stuck)
        if _may_fit(draft, policy, head, admission):
            heads.append(head)
    heapq.heapify(heads)
    while heads:
        head = heapq.heappop(heads)
        if admission.actions and not _may_fit(draft, policy, head, admission):
            continue  # others took what there was
        if _admit_one(draft, policy, draft.job(head.queue[head.next][2]), head, admission):
            head.next += 1
            if head.next < len(head.queue):
                heapq.heappush(heads, head)
            elif draft.is_stuck(head.queue[0][2]):  # there may be room now, and nobody took it
                admission.unsure.append(head.queue[0][2])
    return admission


def _may_fit(draft: Snapshot, policy: Policy, head: _Head, admission: Admission) -> bool:
    """Whether a shape that is known not to fit has anywhere to look again; others look everywhere."""
    if head.stuck is None:
        return True
    job = draft.job(head.queue[head.next][2])
    headroom = headroom_of(draft, policy.thresholds)
    head.where, short = _loosened(draft, headroom, job.request, head.stuck)
    if short:
        names = tuple(sorted([draft.plant.resources[one].name for one in short]))
        admission.stuck.append(Stopper(job.id, names))
    if head.where.bays or head.where.spread_pools:
        return True
    _look_again(draft, policy, islice(head.queue, head.next, None), admission)
    return False


def _loosened(
    draft: Snapshot, headroom: Headroom, request: JobRequest, stuck: Stuck
) -> tuple[Where, set[int]]:
    """Where a shape that fitted nowhere might fit now: where what was short has more room than then.

    And what else was found short there, of all that is above racks: that is to be watched as well.
    """
    plant, gpus, free, kinds = draft.plant, request.gpus, draft.free_in_bays(), draft.plant.kinds
    bays: set[int] = set()
    short: set[int] = set()
    open_zones: dict[tuple[int, int], bool] = {}
    for resource in draft.loosened:
        if kinds[resource] is not ResourceKind.RACK and resource not in stuck.short:
            continue
        left = headroom[resource]
        for first, like in plant.pools_under[resource]:
            taking = taking_of(request, plant, first, gpus)
            if left < taking.amount_of.get(resource, 0):
                continue  # still short, and watched
            for number in like:
                if free[number] < gpus:
                    continue
                bay = plant.bays[number]
                zone = (bay.zone, bay.pool)
                is_open = open_zones.get(zone)
                if is_open is None:
                    above = taking_of(request, plant, bay.first, gpus).amounts
                    missing = [
                        one
                        for one, amount in above
                        if headroom[one] < amount and kinds[one] is not ResourceKind.RACK
                    ]
                    short.update(missing)
                    is_open = open_zones[zone] = not missing
                # A node takes as much of its rack as of its loop.
                if is_open and headroom[bay.rack_resource] >= taking.loop_amount:
                    bays.add(number)
    pools = {plant.bays[bay].pool for bay in bays}
    spread_pools: set[int] = set()
    if draft.loosened:
        given, relieved = draft.given_gpus, draft.relieved
        spread_pools.update(
            pool
            for pool, most in stuck.lacking.items()
            if (relieved or given[pool] >= most) and draft.free_in(pool) >= gpus
        )
    return Where(bays, pools, spread_pools), short - stuck.short


@dataclass(slots=True)
class _Head:
    """A queue of one shape, in line by its next job; behind one that does not fit nobody is tried."""

    class_priority: float
    queue: list[tuple[float, float, str]]
    stuck: Stuck | None
    where: Where | None = None  # all that needs to be looked at; None: all there is
    next: int = 0
    broke: dict[str, float] = field(default_factory=dict)  # project → the shortest it has no budget for

    def __lt__(self, other: _Head) -> bool:
        mine, theirs = self.queue[self.next], other.queue[other.next]
        return (self.class_priority, mine) < (other.class_priority, theirs)


def judge_request(
    draft: Snapshot,
    policy: Policy,
    request: JobRequest,
    near: str | None,
    where: Where | None = None,
) -> Choice:
    """All that is asked of a job before it starts: permission first, then a place.

    Something that could not fit an empty facility either is refused, never queued.
    """
    permission = judge_permission(draft, request, policy)
    if not all(verdict.allows for verdict in permission):
        return Choice(place=None, verdicts=tuple(permission))
    choice = choose_place(draft, policy, request, near=near, where=where)
    if choice.place is None and where is None:
        never = _judge_ever(draft.plant, policy, request)
        if never:
            return Choice(place=None, verdicts=(*permission, *never))
    if permission:
        choice = dataclasses.replace(choice, verdicts=(*permission, *choice.verdicts))
    return choice


def _judge_ever(plant: Plant, policy: Policy, request: JobRequest) -> tuple[Verdict, ...]:
    """Why a job would not fit an empty facility either; nothing where it would."""
    empty = empty_facility(plant)
    asked = (request.project, request.max_duration_seconds, request.shape) if policy.teams else request.shape
    known = empty.ever.get(asked)
    if known is None or known[0] is not policy:
        ever = choose_place(empty.snapshot, policy, request)
        never: tuple[Verdict, ...] = ()
        if ever.place is None and not may_ever_fit(empty.snapshot, policy, request, ever):
            never = tuple(
                verdict
                if verdict.allows
                else replace(verdict, outcome=Outcome.REFUSE, change=_would_help(verdict))
                for verdict in ever.verdicts
            )
        if len(empty.ever) >= _MOST_REMEMBERED:
            empty.ever.clear()
        known = empty.ever[asked] = (policy, never)
    return known[1]


def _would_help(verdict: Verdict) -> str:
    """What to change about something that no waiting will mend."""
    wrong_place = verdict.rule in ("residency", "instance.type")
    return verdict.change if wrong_place else "ask for less"


def dominant(verdicts: tuple[Verdict, ...]) -> Verdict | None:
    """The one reason to name: a refusal before a wait, and the larger shortfall before the smaller."""
    against = [verdict for verdict in verdicts if not verdict.allows]
    if not against:
        return None

    def weight(verdict: Verdict) -> tuple[bool, float]:
        short = verdict.short_by
        asked = next((value for name, value in verdict.numbers.items() if name.startswith("asked_")), 0.0)
        relative = short[0] / asked if short is not None and asked else 0.0
        return (verdict.outcome is Outcome.REFUSE, relative)

    return max(against, key=weight)


def home_of(draft: Snapshot, job: Job) -> str | None:
    """The site a job would rather be at: its checkpoint's, else that of the phase before it."""
    if job.saved is not None:
        return job.saved.site
    for earlier in job.request.after:
        before = draft.jobs.get(earlier)
        if before is not None and before.place is not None:
            return before.place.site
    return None


def _admit_one(draft: Snapshot, policy: Policy, job: Job, head: _Head, admission: Admission) -> bool:
    """Start a job, or say why not. False when others of its shape need not be tried."""
    ready_at = _ready_at(job, policy)
    if draft.at < ready_at:
        admission.looks.append(ready_at)
        return True
    project, seconds = job.request.project, job.remainder.max_duration_seconds or 0.0
    if project in head.broke and seconds >= head.broke[project]:
        return True
    choice = judge_request(draft, policy, job.remainder, home_of(draft, job), head.where)
    verdicts = tuple(
        [verdict if verdict.job else replace(verdict, job=job.id) for verdict in choice.verdicts]
    )
    if choice.place is not None:
        action = next_action(job, ActionKind.START, place=choice.place, rung=-1)
        draft.issue(action)
        admission.actions.append(action)
        admission.verdicts += verdicts
        return True
    reason = dominant(verdicts)
    if reason is None:  # a part was looked at again: it is as it was
        _look_when_the_week_ends(draft, policy, job, admission)
        admission.stuck.append(_stopper(draft, job, choice))
        return False
    if reason.outcome is Outcome.REFUSE:
        action = next_action(job, ActionKind.REFUSE, because=_because(reason))
        admission.actions.append(action)
        admission.verdicts += verdicts
        return True
    if head.where is None and changed(job, verdicts):  # what was seen of a part tells nothing new
        admission.verdicts += verdicts
    _look_when_the_week_ends(draft, policy, job, admission)
    if not _is_about_place(verdicts):  # rules and quotas speak of more than the shape
        if not reason.rule.startswith("rule."):
            head.broke[project] = seconds
        return True
    admission.stuck.append(_stopper(draft, job, choice))
    return False


def _is_about_place(verdicts: tuple[Verdict, ...]) -> bool:
    """Whether something else than a rule or what is left of a quota keeps a job from starting."""
    return any(
        not verdict.allows and not verdict.rule.startswith(("rule.", "quota.", "budget."))
        for verdict in verdicts
    )


def _stopper(draft: Snapshot, job: Job, choice: Choice) -> Stopper:
    """What to watch from now on, beside what is watched already."""
    names = tuple(sorted([draft.plant.resources[number].name for number in choice.short]))
    return Stopper(job.id, names, tuple(sorted(choice.lacking_gpus.items())))


def _look_again(
    draft: Snapshot, policy: Policy, queue: Iterable[tuple[float, float, str]], admission: Admission
) -> None:
    """When to look at a shape that is known not to fit: what judging it again would say."""
    waits: list[float] = []
    for _, _, job_id in queue:
        job = draft.job(job_id)
        ready_at = _ready_at(job, policy)
        if ready_at <= draft.at:
            admission.looks += waits
            _look_when_the_week_ends(draft, policy, job, admission)
            return
        waits.append(ready_at)
    admission.looks += waits


def _look_when_the_week_ends(draft: Snapshot, policy: Policy, job: Job, admission: Admission) -> None:
    if job.request.project in policy.teams:
        admission.looks.append(week_ends_at(draft.at))


def changed(job: Job, verdicts: tuple[Verdict, ...]) -> bool:
    """Whether these say something else than the last that were kept; numbers alone are no news."""

    def gist(of: tuple[Verdict, ...]) -> list[tuple[str, str, str, str]]:
        return [(verdict.rule, verdict.subject, verdict.outcome, verdict.say) for verdict in of]

    return gist(job.verdicts) != gist(verdicts)


def _because(verdict: Verdict) -> str:
    return f"{verdict.sentence()}; {verdict.change}" if verdict.change else verdict.sentence()


def _ready_at(job: Job, policy: Policy) -> float:
    """A job that failed by its own doing waits longer each time; so does one that is lost again and again."""
    times = max(job.restarts, _lost_soon(job) - 1)
    if times <= 0 or job.resumed_at >= job.since:  # a person who wants it to go on need not wait
        return 0.0
    first = policy.thresholds.restart_backoff
    doubled = first * 2.0 ** min(times - 1, _MOST_DOUBLINGS)
    return job.since + min(doubled, max(first, _LONGEST_BACKOFF_SECONDS))


def _lost_soon(job: Job) -> int:
    """How many attempts in a row, up to the last, were lost before they had run for long."""
    lost = 0
    for past in reversed(job.past):
        ran_seconds = 0.0 if past.began_at is None else past.ended_at - past.began_at
        if past.ending is not Ending.LOST or ran_seconds > _LONGEST_BACKOFF_SECONDS:
            break
        lost += 1
    return lost


@dataclass(frozen=True, slots=True)
class Empty:
    """The same facility with nothing running and nothing broken, and what it was asked before."""

    snapshot: Snapshot
    ever: dict[object, tuple[Policy, tuple[Verdict, ...]]]


@lru_cache(maxsize=8)
def empty_facility(plant: Plant) -> Empty:
    state = State(plant.facility)
    state.ledger.metered = [False] * len(plant.resources)
    return Empty(Snapshot(state, 0.0), {})
