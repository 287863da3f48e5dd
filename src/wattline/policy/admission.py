"""Admission: what may start now, what waits and for what, and what can never fit?"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import msgspec

from wattline.facility import Facility
from wattline.policy.naming import next_action
from wattline.policy.permission import allowed_models, allowed_regions, judge_permission, valid_exemptions
from wattline.policy.placement import Choice, choose_place
from wattline.policy.power import headroom_of
from wattline.policy.rooms import Room, Rooms, limit_of_each
from wattline.policy.shortfall import may_ever_fit
from wattline.spec.policy import Policy
from wattline.state import (
    Action,
    ActionKind,
    Ending,
    Job,
    JobRequest,
    Outcome,
    Place,
    Plant,
    Queue,
    Snapshot,
    State,
    Verdict,
    week_ends_at,
)

replace = msgspec.structs.replace

_LONGEST_BACKOFF_SECONDS = 600.0
_MOST_REMEMBERED = 100_000
_MOST_DOUBLINGS = 30  # far beyond the longest backoff, and far below what a float holds


class Admission(msgspec.Struct):
    actions: list[Action] = msgspec.field(default_factory=list)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    stuck: list[str] = msgspec.field(default_factory=list)
    unsure: list[str] = msgspec.field(default_factory=list)
    looks: list[float] = msgspec.field(default_factory=list)


def admit(draft: Snapshot, policy: Policy) -> Admission:
    """Go through the waiting jobs, the most urgent first; each that fits takes its place at once."""
    admission = Admission()
    loosened = _Loosened(draft, policy)
    heads = []
    for is_stuck, queue in draft.queues:
        first = draft.jobs[queue[0][2]]
        pools = loosened.pools(first.request) if is_stuck else None
        if pools is not None and not pools:
            if first.past or policy.teams:
                _look_again(draft, policy, queue, admission)
            continue
        known = policy.classes.get(first.request.scheduling_class)
        heads.append(_Head(-(known.priority if known else 0.0), queue, pools))
    heapq.heapify(heads)
    while heads:
        head = heapq.heappop(heads)
        job = draft.job(head.queue[head.next][2])
        if head.pools is not None and admission.actions:  # others may have taken what there was
            head.pools = loosened.pools(job.request)
            if not head.pools:
                _look_again(draft, policy, head.queue, admission, head.next)
                continue
        issued = len(admission.actions)
        if _admit_one(draft, policy, job, head, admission):
            for action in admission.actions[issued:]:
                if action.place is not None:
                    loosened.take(job.request, action.place)
            head.next += 1
            if head.next < len(head.queue):
                heapq.heappush(heads, head)
            elif draft.is_stuck(head.queue[0][2]):  # there may be room now, and nobody took it
                admission.unsure.append(head.queue[0][2])
    return admission


class _Loosened:
    """Where shapes that are known to have fitted nowhere may fit now.

    Where nothing was loosened it is as it was; where there is less room than one needs it does not fit, and
    will not before more is loosened.
    """

    __slots__ = ("_draft", "_headroom", "_known", "_pools", "_rooms")

    def __init__(self, draft: Snapshot, policy: Policy) -> None:
        self._draft = draft
        self._headroom = headroom_of(draft, policy.thresholds)
        self._rooms = Rooms.of(draft, policy.thresholds)
        self._pools = draft.loosened_pools(policy.thresholds.reading_max_age)
        self._known: dict[float | None, dict[int, int]] = {}  # the biggest job that may fit, by pool

    def pools(self, request: JobRequest) -> list[int]:
        if not self._pools:
            return []
        each = limit_of_each(request)
        known = self._known.get(each)
        if known is None:
            known = self._known[each] = {pool: self._room(request, pool).most for pool in self._pools}
        gpus = request.gpus
        if max(known.values()) < gpus:  # most shapes, most of the time
            return []
        return [pool for pool, most in known.items() if most >= gpus]

    def take(self, request: JobRequest, place: Place) -> None:
        """A job took a place: elsewhere there is not more room than there was, and here there is less."""
        plant = self._draft.plant
        pool = plant.spots[plant.node_number[place.nodes[0][0]]].pool
        known = self._known.get(limit_of_each(request))
        if known is not None and pool in known:
            known[pool] = min(known[pool], self._room(request, pool).most_above)

    def _room(self, request: JobRequest, pool: int) -> Room:
        return self._rooms.room(self._draft, self._headroom, request, pool)


_Bounds = tuple[frozenset[str] | None, tuple[str, ...] | None]  # models, regions


class _Head(msgspec.Struct):
    """A queue of one shape, in line by its next job; behind one that does not fit nobody is tried."""

    class_priority: float
    queue: Queue
    pools: list[int] | None  # all that needs to be looked at; None: all there is
    next: int = 0
    # By project, the shortest it has no budget for.
    broke: dict[str, float] = msgspec.field(default_factory=dict)
    # Models and regions that a team is bound to, none to be had.
    without: set[_Bounds] = msgspec.field(default_factory=set)

    def __lt__(self, other: _Head) -> bool:
        mine, theirs = self.queue[self.next], other.queue[other.next]
        return (self.class_priority, mine) < (other.class_priority, theirs)


def judge_request(
    draft: Snapshot,
    policy: Policy,
    request: JobRequest,
    near: str | None,
    only: Collection[int] | None = None,
) -> Choice:
    """All that is asked of a job before it starts: permission first, then a place.

    Something that could not fit an empty facility either is refused, never queued.
    """
    permission = judge_permission(draft, request, policy)
    if not all(verdict.allows for verdict in permission):
        return Choice(None, tuple(permission))
    choice = choose_place(draft, policy, request, near=near, only=only)
    if choice.place is None and only is None:
        never = _judge_ever(draft, policy, request)
        if never:
            return Choice(None, (*permission, *never))
    return Choice(choice.place, (*permission, *choice.verdicts)) if permission else choice


def _judge_ever(draft: Snapshot, policy: Policy, request: JobRequest) -> tuple[Verdict, ...]:
    """Why a job would not fit an empty facility either; nothing where it would."""
    empty = empty_facility(draft.plant)
    asked = (request.project, request.max_duration_seconds, request.shape) if policy.teams else request.shape
    snapshot = empty.snapshot
    if policy.exemptions:  # they end
        snapshot = Snapshot(empty.state, draft.at)
        asked = (asked, tuple(valid_exemptions(draft, request, policy)))
    known = empty.ever.get(asked)
    if known is None or known[0] is not policy:
        ever = choose_place(snapshot, policy, request)
        never: tuple[Verdict, ...] = ()
        if ever.place is None and not may_ever_fit(snapshot, policy, request, ever.verdicts):
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
    bound = _bounds_of(job.request, policy)
    if bound is not None and bound in head.without:
        return True
    choice = judge_request(draft, policy, job.remainder, home_of(draft, job), head.pools)
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
    if reason is not None and reason.outcome is Outcome.REFUSE:
        action = next_action(job, ActionKind.REFUSE, because=_because(reason))
        admission.actions.append(action)
        admission.verdicts += verdicts
        return True
    _look_when_the_week_ends(draft, policy, job, admission)
    if reason is not None:  # otherwise a part was looked at again, and it is as it was
        if head.pools is None and changed(job, verdicts):  # what was seen of a part tells nothing new
            admission.verdicts += verdicts
        if not _is_about_place(verdicts):  # rules and quotas speak of more than the shape
            if not reason.rule.startswith("rule."):
                head.broke[project] = seconds
            return True
    if bound is not None:  # another team may use what this one may not
        head.without.add(bound)
        return True
    admission.stuck.append(job.id)
    return False


def _bounds_of(request: JobRequest, policy: Policy) -> _Bounds | None:
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


def _look_again(draft: Snapshot, policy: Policy, queue: Queue, admission: Admission, first: int = 0) -> None:
    """When to look at a shape that is known not to fit: what judging it again would say."""
    waits: list[float] = []
    for _, _, job_id in islice(queue, first, None):
        job = draft.jobs[job_id]
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
    if not job.past:
        return 0.0
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

    state: State
    snapshot: Snapshot
    ever: dict[object, tuple[Policy, tuple[Verdict, ...]]]


def without_meters(facility: Facility) -> Facility:
    """The same with no meter that could be silent: with nothing running there is nothing to read."""
    sites = tuple([dataclasses.replace(site, telemetry="none") for site in facility.sites])
    return dataclasses.replace(facility, sites=sites)


@lru_cache(maxsize=8)
def empty_facility(plant: Plant) -> Empty:
    state = State(without_meters(plant.facility))
    return Empty(state, Snapshot(state, 0.0), {})
