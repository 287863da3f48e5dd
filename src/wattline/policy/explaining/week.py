"""A team's week: what may it use, what has it used and been promised, and will that last?

Used is what ended this week; promised is the most that running jobs may still use. The present rate is what
running jobs use in an hour as they run now: their GPUs, and their peak power under the cap they are under.
When a limit is reached is told of them alone, for as long as they may run: nobody knows what comes after.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from wattline.policy.permitting.exceptions import QUANTITIES, granted
from wattline.policy.permitting.pools import most_used
from wattline.policy.placing.judging import place_alone
from wattline.spec.policy import Policy
from wattline.state import ENDED, Job, JobState, Snapshot, Usage, seconds_left, week_ends_at
from wattline.state.account import promise_of
from wattline.units import SECONDS_PER_HOUR


class QuotaWeek(msgspec.Struct, frozen=True, kw_only=True):
    """One quota or budget of a team; amounts in its unit. Without a limit nothing is left or reached."""

    quantity: str
    unit: str
    limit: float | None  # what was granted on top included
    granted: float
    used: float
    promised: float
    left: float | None
    rate_per_hour: float
    reaches_at: float | None  # before the week ends, by what runs now


class TeamWeek(msgspec.Struct, frozen=True, kw_only=True):
    team: str
    limit: str  # hard | soft | none
    quotas: tuple[QuotaWeek, ...]
    running: tuple[str, ...]
    waiting: tuple[str, ...]
    running_gpus: int
    waiting_gpus: int


class RunTake(msgspec.Struct, frozen=True, kw_only=True):
    """What a run takes of its team's week."""

    run: str
    project: str
    used: Usage
    promised: Usage
    still: Usage  # at most, by the jobs that have not started; those not estimated left out
    sites: tuple[str, ...]  # where these would be put if they were alone: what is still to come is as there
    not_estimated: tuple[str, ...]


def teams_of(snapshot: Snapshot, policy: Policy) -> list[str]:
    """Teams of the policy, then projects that it says nothing of and that use something or ask for it."""
    asking = {job.request.project for job in snapshot.jobs.values() if job.state not in ENDED}
    return [*policy.teams, *sorted({*asking, *snapshot.accounts}.difference(policy.teams))]


def week_of_team(snapshot: Snapshot, policy: Policy, project: str, *, is_conducted: bool = True) -> TeamWeek:
    """Where nobody conducts, what was running uses nothing any more."""
    jobs = [job for job in snapshot.jobs.values() if job.request.project == project]
    holding = [job for job in jobs if job.id in snapshot.holding]
    waiting = [job for job in jobs if job.state in (JobState.WAITING, JobState.PAUSED)]
    team = policy.teams.get(project)
    return TeamWeek(
        team=project,
        limit="none" if team is None or not team.quota.model_fields_set else team.limit,
        quotas=tuple(_quotas(snapshot, policy, project, holding if is_conducted else ())),
        running=tuple([job.id for job in holding]),
        waiting=tuple([job.id for job in waiting]),
        running_gpus=sum(job.request.gpus for job in holding),
        waiting_gpus=sum(job.request.gpus for job in waiting),
    )


def _quotas(snapshot: Snapshot, policy: Policy, project: str, holding: Iterable[Job]) -> Iterator[QuotaWeek]:
    account, team = snapshot.account(project), policy.teams.get(project)
    promised = account.promised.usage()
    hourly, spent, until = Usage(), Usage(), []
    for job in holding:
        each, began_at = _in_an_hour(snapshot, job), job.started_at or snapshot.at
        hourly = hourly.plus(each)
        spent = spent.plus(_times(each, (snapshot.at - began_at) / SECONDS_PER_HOUR))
        left_seconds = seconds_left(job)
        until.append((math.inf if left_seconds is None else began_at + left_seconds, each))
    until.sort(key=lambda one: one[0])
    for quantity, unit, rule in QUANTITIES:
        written: float | None = getattr(team.quota, quantity) if team is not None else None
        more = sum([exception.amount for exception in granted(snapshot, project, rule)], 0.0)
        limit = None if written is None else written + more
        used, rate = getattr(account.used, quantity), getattr(hourly, quantity)
        committed = used + getattr(promised, quantity)
        yield QuotaWeek(
            quantity=quantity,
            unit=unit,
            limit=limit,
            granted=more if written is not None else 0.0,
            used=used,
            promised=getattr(promised, quantity),
            left=None if limit is None else max(0.0, limit - committed),
            rate_per_hour=rate,
            reaches_at=None
            if limit is None
            else _reached_at(
                snapshot.at,
                limit - used - getattr(spent, quantity),
                [(ends_at, getattr(each, quantity)) for ends_at, each in until],
            ),
        )


def _in_an_hour(snapshot: Snapshot, job: Job) -> Usage:
    assert job.place is not None
    return promise_of(job.request, job.place, snapshot.plant, job.power_fraction, SECONDS_PER_HOUR)


def _times(usage: Usage, factor: float) -> Usage:
    return Usage(*[factor * getattr(usage, quantity) for quantity, _, _ in QUANTITIES])


def _reached_at(at: float, left: float, rates: Sequence[tuple[float, float]]) -> float | None:
    """By jobs that each use so much an hour until they must end, the first to end first."""
    if left <= 0:
        return at
    per_hour, week_ends = sum(rate for _, rate in rates), week_ends_at(at)
    for ends_at, rate in rates:
        reached_at = at + SECONDS_PER_HOUR * left / per_hour if per_hour > 0 else math.inf
        if reached_at < min(ends_at, week_ends):
            return reached_at
        left -= per_hour * max(0.0, ends_at - at) / SECONDS_PER_HOUR
        at, per_hour = max(at, ends_at), per_hour - rate
    return None


def take_of_run(snapshot: Snapshot, policy: Policy, run: str, jobs: Iterable[str]) -> RunTake:
    used, promised, still = Usage(), Usage(), Usage()
    not_estimated, sites, project = [], set(), ""
    for job_id in jobs:
        job = snapshot.job(job_id)
        project = job.request.project
        used, promised = used.plus(job.usage), promised.plus(job.promise)
        if job.state in ENDED or job_id in snapshot.holding:
            continue
        knows_end = job.request.max_duration_seconds is not None
        place = place_alone(snapshot, policy, job.remainder) if knows_end else None
        if place is None:
            not_estimated.append(job.request.phase)
        else:
            still = still.plus(most_used(job.remainder, place, snapshot.plant))
            sites.add(place.site)
    return RunTake(
        run=run,
        project=project,
        used=used,
        promised=promised,
        still=still,
        sites=tuple(sorted(sites)),
        not_estimated=tuple(not_estimated),
    )
