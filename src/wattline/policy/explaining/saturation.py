"""Saturation: is a queue too long for who has just come, and what would serve them better than waiting?

Asked once, of what was submitted since the last decision and does not start in this one. How long it would
wait is known from the forecast that came with it; without one nobody is refused for that, and that is said.
Who was let in once is never turned away for the length of a queue.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from wattline.policy.explaining.lanes import choose_lanes
from wattline.policy.naming import next_action
from wattline.policy.placing.offering import tell_options
from wattline.spec.policy import Policy
from wattline.spec.queueing import QueueBound
from wattline.state import Action, ActionKind, Job, JobState, Outcome, Snapshot, Verdict
from wattline.units import format_seconds

if TYPE_CHECKING:
    from wattline.policy.admitting.trying import Admission

replace = msgspec.structs.replace

# For so many shapes of one decision it is worked out what would serve them; others are told when to retry.
_MOST_HELPED = 8


class Scope(msgspec.Struct, frozen=True):
    """Whose queue a bound is about."""

    kind: str  # fleet | class | team
    subject: str
    bound: QueueBound

    def holds(self, job: Job) -> bool:
        if self.kind == "fleet":
            return True
        request = job.request
        return self.subject == (request.scheduling_class if self.kind == "class" else request.project)

    def count(self, snapshot: Snapshot) -> int:
        """All that wait within it, by lines and not one by one."""
        if self.kind == "fleet":
            return snapshot.waiting_count
        of_team = self.kind == "team"
        groups = [
            group
            for (of_class, project), group in snapshot.groups(by_project=of_team).items()
            if self.subject == (project if of_team else of_class)
        ]
        return sum([len(line.queue) for group in groups for _, line in group])


def scopes_of(policy: Policy, job: Job) -> list[Scope]:
    """The bounds that concern a job: of all, of its class and of its team."""
    known, team = policy.classes.get(job.request.scheduling_class), policy.teams.get(job.request.project)
    bounds = (
        ("fleet", "fleet", policy.queue),
        ("class", job.request.scheduling_class, known.queue if known is not None else None),
        ("team", job.request.project, team.queue if team is not None else None),
    )
    return [Scope(kind, subject, bound) for kind, subject, bound in bounds if bound is not None]


def bound_queues(draft: Snapshot, policy: Policy, admission: Admission, burst: Iterable[Action] = ()) -> None:
    """Refuse, or warn, those who came to a queue that is too long; after all that fits was started, and who
    `burst` went to a cloud."""
    secured = {one.job for one in admission.reservations}.union(draft.reservations)
    acted = {action.job for action in (*admission.actions, *burst)}
    known = [draft.jobs[job_id] for job_id in draft.newcomers if job_id in draft.jobs]
    come = [job for job in known if job.state is JobState.WAITING and job.id not in (secured | acted)]
    come.sort(key=lambda job: (job.submitted_at, job.id))
    gone = [draft.jobs[job_id] for job_id in acted if draft.jobs[job_id].state is JobState.WAITING]
    ahead: dict[tuple[str, str], int] = {}  # who waits within each bound, those who were let in included
    turned_away: set[str] = set()
    helped: dict[object, str] = {}
    for job in come:
        scopes = scopes_of(policy, job)
        for scope in scopes:
            if (scope.kind, scope.subject) not in ahead:
                others = [one for one in (*gone, *come) if scope.holds(one)]
                ahead[scope.kind, scope.subject] = scope.count(draft) - len(others)
        verdicts = [
            verdict
            for scope in scopes
            for verdict in _judge(draft, job, scope, ahead[scope.kind, scope.subject])
        ]
        if any(verdict.change for verdict in verdicts):
            verdicts = _with_help(verdicts, _help(draft, policy, job, helped))
        admission.verdicts += verdicts
        refusal = next((verdict for verdict in verdicts if verdict.outcome is Outcome.REFUSE), None)
        if refusal is not None:
            turned_away.add(job.id)
            because = f"{refusal.sentence()}; {refusal.change}"
            admission.actions.append(next_action(job, ActionKind.REFUSE, because=because))
            continue
        for scope in scopes:
            ahead[scope.kind, scope.subject] += 1
    if turned_away:  # a shape of which nobody waits is not known not to fit
        admission.stuck = [job_id for job_id in admission.stuck if job_id not in turned_away]


def judge_queue(snapshot: Snapshot, policy: Policy, job: Job) -> list[Verdict]:
    """The same of one job that was laid behind all that waits."""
    verdicts = [
        verdict
        for scope in scopes_of(policy, job)
        for verdict in _judge(snapshot, job, scope, scope.count(snapshot) - 1)
    ]
    if any(verdict.change for verdict in verdicts):
        verdicts = _with_help(verdicts, _help(snapshot, policy, job, {}))
    return verdicts


def _judge(snapshot: Snapshot, job: Job, scope: Scope, ahead: int) -> list[Verdict]:
    bound, found = scope.bound, []
    if bound.max_waiting_jobs is not None:
        found.append(_judge_length(snapshot, scope, ahead, bound.max_waiting_jobs))
    if bound.max_wait is not None:
        found.append(_judge_wait(snapshot, job, scope, bound.max_wait))
    return [replace(verdict, job=job.id) for verdict in found]


def _judge_length(snapshot: Snapshot, scope: Scope, ahead: int, most: int) -> Verdict:
    numbers = {"waiting_jobs": float(ahead), "limit_jobs": float(most)}
    if ahead < most:
        return Verdict.allow("queue.length", scope.subject, **numbers)
    retry_at = _when_started(snapshot, scope, ahead - most + 1)
    when = "when fewer wait" if retry_at is None else f"{_at(retry_at)}, by the last forecast"
    return Verdict(
        rule="queue.length",
        subject=scope.subject,
        outcome=_outcome(scope.bound),
        numbers=numbers,
        change=f"submit again {when}",
    )


def _when_started(snapshot: Snapshot, scope: Scope, number: int) -> float | None:
    """When so many of those who wait within a bound will have started, by the last forecast."""
    known = snapshot.forecast.starts if snapshot.forecast is not None else ()
    starts = [
        expected.p50_at
        for expected in known
        if expected.p50_at is not None
        and expected.job in snapshot.jobs
        and scope.holds(snapshot.jobs[expected.job])
    ]
    return sorted(starts)[number - 1] if number <= len(starts) else None


def _judge_wait(snapshot: Snapshot, job: Job, scope: Scope, most_seconds: float) -> Verdict:
    forecast, expected = snapshot.forecast, snapshot.expected(job.id)
    if forecast is None or expected is None:
        return _not_judged(scope, most_seconds, "nobody has forecast when it starts")
    is_beyond = expected.p50_at is None  # of all that was looked at
    counted = expected.p50_at if scope.bound.by == "p50" else expected.p90_at
    if counted is None and not is_beyond:
        return _not_judged(scope, most_seconds, "too few futures were played for a p90")
    starts_at = forecast.at + forecast.horizon_seconds if counted is None else counted
    over_seconds = starts_at - snapshot.at - most_seconds
    times = (("p50", expected.p50_at), ("p90", expected.p90_at))
    numbers = {f"wait_{name}_seconds": max(0.0, at - snapshot.at) for name, at in times if at is not None}
    numbers["limit_seconds"] = most_seconds
    if over_seconds > 0.0:
        numbers["over_by_seconds"] = over_seconds
    numbers["forecast_age_seconds"] = max(0.0, snapshot.at - forecast.at)
    if over_seconds <= 0.0:
        return Verdict.allow("queue.wait", scope.subject, **numbers)
    return Verdict(
        rule="queue.wait",
        subject=scope.subject,
        outcome=_outcome(scope.bound),
        numbers=numbers,
        say=f"not expected within {format_seconds(forecast.horizon_seconds)}" if is_beyond else "",
        change=f"submit again {_at(starts_at - most_seconds)}, by this forecast",
    )


def _not_judged(scope: Scope, most_seconds: float, why: str) -> Verdict:
    say = f"not judged against {format_seconds(most_seconds)}: {why}"
    return Verdict(rule="queue.wait", subject=scope.subject, outcome=Outcome.WARN, say=say)


def _with_help(verdicts: Iterable[Verdict], ways: str) -> list[Verdict]:
    return [
        replace(verdict, change=f"{verdict.change}. {ways}") if verdict.change and ways else verdict
        for verdict in verdicts
    ]


def _help(draft: Snapshot, policy: Policy, job: Job, helped: dict[object, str]) -> str:
    """What would start it now; worked out once for each shape."""
    asked = (job.request.shape, job.request.project, job.request.max_duration_seconds)
    if asked not in helped:
        if len(helped) >= _MOST_HELPED:
            return ""
        helped[asked] = tell_options(choose_lanes(draft, policy, job), draft.at, most=4).rstrip(".")
    return helped[asked]


def _outcome(bound: QueueBound) -> Outcome:
    return Outcome.REFUSE if bound.mode == "refuse" else Outcome.WARN


def _at(at: float) -> str:
    """A moment for somebody anywhere, not before it: the journal keeps these words."""
    minute = 60.0 * math.ceil(at / 60.0)
    return f"at {datetime.fromtimestamp(minute, UTC):%Y-%m-%d %H:%M} UTC"
