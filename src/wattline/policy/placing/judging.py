"""Judging: what is asked of a job before it starts, and could it ever?"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import msgspec

from wattline.facility import Facility
from wattline.policy.permitting.classes import judge_class
from wattline.policy.permitting.exceptions import BUDGETS
from wattline.policy.permitting.permission import exempt_by, judge_permission
from wattline.policy.placing.cloud import choose_cloud, may_burst, offers
from wattline.policy.placing.placement import Choice, choose_place
from wattline.policy.placing.shortfall import may_ever_fit
from wattline.spec.policy import Policy
from wattline.state import Job, JobRequest, Outcome, Place, Plant, Snapshot, State, Verdict

replace = msgspec.structs.replace

_MOST_REMEMBERED = 100_000


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
    permission += judge_class(draft, policy, request)
    if not all(verdict.allows for verdict in permission):
        return Choice(None, tuple(permission))
    choice = choose_place(draft, policy, request, near=near, only=only)
    if choice.place is None and only is None:
        never = judge_ever(draft, policy, request)
        if never and not (draft.plant.clouds and may_ever_burst(draft, policy, request)):
            return Choice(None, (*permission, *never))
    return Choice(choice.place, (*permission, *choice.verdicts)) if permission else choice


def judge_ever(draft: Snapshot, policy: Policy, request: JobRequest) -> tuple[Verdict, ...]:
    """Why a job would not fit empty halls of our own either; nothing where it would."""
    return _ever(draft, policy, request).never


def place_alone(draft: Snapshot, policy: Policy, request: JobRequest) -> Place | None:
    """Where a job would be put if it were alone."""
    return _ever(draft, policy, request).place


def _ever(draft: Snapshot, policy: Policy, request: JobRequest) -> _Ever:
    empty = empty_facility(draft.plant)
    asked = (request.project, request.max_duration_seconds, request.shape) if policy.teams else request.shape
    snapshot = empty.snapshot
    if policy.exemptions or draft.exceptions:  # they end
        snapshot = Snapshot(empty.state, draft.at)
        snapshot.exceptions = draft.exceptions
        asked = (asked, exempt_by(draft, request, policy))
    known = empty.ever.get(asked)
    if known is None or known.policy is not policy:
        ever = choose_place(snapshot, policy, request, judge=False)
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
        known = empty.ever[asked] = _Ever(policy, ever.place, never)
    return known


def may_ever_burst(draft: Snapshot, policy: Policy, request: JobRequest) -> bool:
    """Whether some cloud could take a job that fits nowhere else."""
    if not may_burst(request, policy):
        return False
    empty = empty_facility(draft.plant).snapshot
    return choose_cloud(empty, policy, request, offers(empty, policy, request)) is not None


def _would_help(verdict: Verdict) -> str:
    """What to change about something that no waiting will mend."""
    if verdict.rule in BUDGETS:
        return "ask for less, or for an exception"
    wrong_place = verdict.rule in ("residency", "instance.type")
    return verdict.change if wrong_place else "ask for less"


def dominant(verdicts: tuple[Verdict, ...]) -> Verdict | None:
    """The one reason to name: a refusal before a wait, and the larger shortfall before the smaller."""
    against = [verdict for verdict in verdicts if not verdict.allows]
    if not against:
        return None

    def weight(verdict: Verdict) -> tuple[bool, bool, float]:
        short = verdict.short_by
        asked = next((value for name, value in verdict.numbers.items() if name.startswith("asked_")), 0.0)
        relative = short[0] / asked if short is not None and asked else 0.0
        # What is short among nodes that are awake is no reason while others wake.
        return (verdict.outcome is Outcome.REFUSE, verdict.rule.startswith("scaling."), relative)

    return max(against, key=weight)


def changed(job: Job, verdicts: tuple[Verdict, ...]) -> bool:
    """Whether these say something else than the last that were kept; numbers alone are no news."""

    def gist(of: tuple[Verdict, ...]) -> list[tuple[str, str, str, str]]:
        return [
            (verdict.rule, verdict.subject, verdict.outcome, verdict.say)
            for verdict in of
            if not verdict.rule.startswith("scaling.")  # told apart, beside what else was
        ]

    return gist(job.verdicts) != gist(verdicts)


class _Ever(NamedTuple):
    """Where a job would go in empty halls, or why nowhere."""

    policy: Policy
    place: Place | None
    never: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Empty:
    """The same facility with nothing running and nothing broken, and what it was asked before."""

    state: State
    snapshot: Snapshot
    ever: dict[object, _Ever]


def without_meters(facility: Facility) -> Facility:
    """The same with no meter that could be silent: with nothing running there is nothing to read."""
    sites = tuple([dataclasses.replace(site, telemetry="none") for site in facility.sites])
    return dataclasses.replace(facility, sites=sites)


@lru_cache(maxsize=8)
def empty_facility(plant: Plant) -> Empty:
    state = State(without_meters(plant.facility))
    return Empty(state, Snapshot(state, 0.0), {})
