"""What came of a week: a team's week, what will not last, and how the SLOs stand."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from wattline.control import Standing
from wattline.errors import UsageError
from wattline.plane.counting import Counted, count
from wattline.plane.excepting import describe_exception
from wattline.plane.finding import View, find_run, unknown
from wattline.plane.moments import iso
from wattline.plane.standing import why_not
from wattline.plane.told import ReportTold, ScalingTold, TeamTold
from wattline.policy.explaining.reviewing import review_policy
from wattline.policy.explaining.week import (
    QuotaWeek,
    RunTake,
    TeamWeek,
    take_of_run,
    teams_of,
    week_of_team,
)
from wattline.policy.permitting.exceptions import QUANTITIES
from wattline.spec import Policy
from wattline.state import PolicyException, Snapshot, Starts
from wattline.state.account import WEEK_SECONDS, week_ends_at, week_of


@dataclass(frozen=True, slots=True)
class Shown:
    """A team's week, what each waiting job waits for, and exceptions that are open or hold."""

    week: TeamWeek
    waits: tuple[tuple[str, str], ...]
    exceptions: tuple[PolicyException, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    policy: str
    at: float
    begins_at: float
    ends_at: float
    is_over: bool
    is_conducted: bool
    teams: tuple[Shown, ...]
    run: RunTake | None
    warnings: tuple[str, ...]
    slos: tuple[Standing, ...]
    starts: Starts | None = None  # where the policy lets nodes sleep


@dataclass(frozen=True, slots=True)
class _Asked:
    """The week that was asked for, by a moment in it, and how that stands to now."""

    at: float
    is_over: bool


def make_report(view: View, *, team: str | None, week: str, run: str | None) -> Report:
    """Of all teams or one, for a week, and what one run takes of it."""
    now = max(time.time(), view.state.at)
    asked = parse_week(week, now)
    policy = view.session.policy()
    snapshot = Snapshot(view.state, now)
    counted = count(view.session, policy.slos) if policy.slos or asked.is_over else None
    known = teams_of(snapshot, policy)
    if asked.is_over and counted is not None:
        known = [*dict.fromkeys([*known, *counted.weeks.projects(week_of(asked.at))])]
    if team is not None and team not in known:
        raise unknown("team", team, known)
    return Report(
        policy=policy.policy,
        at=now,
        begins_at=week_ends_at(asked.at) - WEEK_SECONDS,
        ends_at=week_ends_at(asked.at),
        is_over=asked.is_over,
        is_conducted=view.writer is not None,
        teams=tuple(
            _shown(view, snapshot, policy, name, asked, counted) for name in known if team in (None, name)
        ),
        run=_take(view, snapshot, policy, run, team),
        warnings=tuple(review_policy(policy, snapshot.plant)),
        slos=_standings(view, policy, counted, team),
        starts=view.state.resting.starts if policy.scaling is not None else None,
    )


def parse_week(text: str, now: float) -> _Asked:
    """`this`, `last`, or an ISO week; weeks that have not begun have no report."""
    if text == "this":
        return _Asked(now, is_over=False)
    if text == "last":
        return _Asked(now - WEEK_SECONDS, is_over=True)
    try:
        at = datetime.strptime(f"{text}-1", "%G-W%V-%u").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise UsageError(
            f"--week {text[:50]!r} is no week", hint="this, last, or such as 2026-W47"
        ) from error
    if week_of(at) > week_of(now):
        raise UsageError(f"--week {text}: it has not begun", hint="this, last, or an earlier one")
    return _Asked(now, is_over=False) if week_of(at) == week_of(now) else _Asked(at, is_over=True)


def _shown(
    view: View, snapshot: Snapshot, policy: Policy, name: str, asked: _Asked, counted: Counted | None
) -> Shown:
    exceptions = tuple(
        each
        for each in view.state.exceptions.values()
        if each.project == name and each.standing(snapshot.at) in ("asked", "approved")
    )
    week = week_of_team(snapshot, policy, name, is_conducted=view.writer is not None)
    if asked.is_over and counted is not None:
        week, exceptions = _past(policy, name, counted, week_of(asked.at)), ()
    waits = tuple((job_id, why_not(view.state, snapshot.job(job_id))) for job_id in week.waiting)
    return Shown(week, waits, exceptions)


def _past(policy: Policy, name: str, counted: Counted, week: int) -> TeamWeek:
    """A week that is over, against the quotas that are in force now."""
    team, usage = policy.teams.get(name), counted.weeks.used(week, name)
    quotas = []
    for quantity, unit, _ in QUANTITIES:
        limit: float | None = getattr(team.quota, quantity) if team is not None else None
        used = getattr(usage, quantity)
        quotas.append(
            QuotaWeek(
                quantity=quantity,
                unit=unit,
                limit=limit,
                granted=0.0,
                used=used,
                promised=0.0,
                left=None if limit is None else max(0.0, limit - used),
                rate_per_hour=0.0,
                reaches_at=None,
            )
        )
    return TeamWeek(
        team=name,
        limit="none" if team is None or not team.quota.model_fields_set else team.limit,
        quotas=tuple(quotas),
        running=(),
        waiting=(),
        running_gpus=0,
        waiting_gpus=0,
    )


def _take(
    view: View, snapshot: Snapshot, policy: Policy, run: str | None, team: str | None
) -> RunTake | None:
    if run is None:
        return None
    found = find_run(view.state, run)
    take = take_of_run(snapshot, policy, found.run, found.jobs)
    if team is not None and take.project != team:
        raise UsageError(f"run {found.run} is of {take.project}, not of {team}", hint="leave --team out")
    return take


def _standings(view: View, policy: Policy, counted: Counted | None, team: str | None) -> tuple[Standing, ...]:
    """Of all, and of this team where one is named; as of the journal's last word where nobody conducts."""
    if counted is None or counted.state is None:
        return ()
    standings = counted.objectives.standings(counted.state, view.at)
    return tuple(
        standing
        for standing, slo in zip(standings, policy.slos, strict=True)
        if team is None or slo.project in (None, team)
    )


def describe_report(report: Report) -> ReportTold:
    told: ReportTold = {
        "policy": report.policy,
        "at": iso(report.at),
        "week": {
            "begins_at": iso(report.begins_at),
            "ends_at": iso(report.ends_at),
            "is_over": report.is_over,
        },
        "teams": [_describe_team(shown, report.at) for shown in report.teams],
        "run": report.run,
        "warnings": report.warnings,
        "slos": report.slos,
        "not_estimated": [f"run.{phase}" for phase in report.run.not_estimated] if report.run else [],
    }
    if report.starts is not None:
        told["scaling"] = _describe_starts(report.starts)
    return told


def _describe_starts(starts: Starts) -> ScalingTold:
    return {
        "starts": starts.starts,
        "cold_starts": starts.cold,
        "hit_rate": (starts.starts - starts.cold) / starts.starts if starts.starts else None,
        "cold_start_seconds": starts.cold_seconds / starts.cold if starts.cold else None,
        "longest_cold_start_seconds": starts.longest_seconds,
    }


def _describe_team(shown: Shown, now: float) -> TeamTold:
    week = shown.week
    return {
        "team": week.team,
        "limit": week.limit,
        "quotas": {
            quota.quantity: {
                "limit": quota.limit,
                "granted": quota.granted,
                "used": quota.used,
                "promised": quota.promised,
                "left": quota.left,
                "rate_per_hour": quota.rate_per_hour,
                "reaches_at": iso(quota.reaches_at),
            }
            for quota in week.quotas
        },
        "running": {"jobs": week.running, "gpus": week.running_gpus},
        "waiting": {
            "jobs": [{"job": job, "waiting_for": why or None} for job, why in shown.waits],
            "gpus": week.waiting_gpus,
        },
        "exceptions": [describe_exception(each, now) for each in shown.exceptions],
    }
