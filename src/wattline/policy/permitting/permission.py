"""Permission: may this be asked at all? Classes, durations, instance types, regions, rules, quotas."""

from __future__ import annotations

import msgspec

from wattline.policy.permitting.exceptions import (
    QUANTITIES,
    granted,
    say_allowed,
    standing_exceptions,
)
from wattline.policy.permitting.rules import judge_rules
from wattline.spec.policy import Policy
from wattline.state import JobRequest, Outcome, Place, Snapshot, Usage, Verdict
from wattline.state.market import promise_at
from wattline.units import format_seconds


def judge_permission(snapshot: Snapshot, request: JobRequest, policy: Policy) -> list[Verdict]:
    """What the policy says of the request itself, wherever it would run."""
    if (
        request.max_duration_seconds is None
        and not request.gpu_models
        and request.project not in policy.teams
    ):
        known = policy.classes.get(request.scheduling_class)
        if known is None or known.max_duration is None:  # the common case asks nothing but the rules
            return _exempt(snapshot, request, policy, judge_rules(snapshot, request, policy))
    verdicts = [
        *_judge_duration(request, policy),
        *_judge_team_duration(request, policy),
        *_judge_instance_type(request, policy),
        *_judge_region(request, policy),
        *judge_rules(snapshot, request, policy),
    ]
    return _exempt(snapshot, request, policy, verdicts)


def _exempt(
    snapshot: Snapshot, request: JobRequest, policy: Policy, verdicts: list[Verdict]
) -> list[Verdict]:
    """What was said against a job, taken back where its project is exempt from that rule for now.

    Not of instance types and regions: where a job may be put is no matter of time.
    """
    if not policy.exemptions and not snapshot.exceptions:
        return verdicts
    waived = waived_rules(snapshot, request, policy)
    found = []
    for verdict in verdicts:
        said = waived.get(verdict.rule.removeprefix("rule.")) or waived.get(verdict.rule)
        if said is not None and not verdict.allows and verdict.rule not in _ABOUT_PLACES:
            verdict = msgspec.structs.replace(verdict, outcome=Outcome.WARN, say=said, change="")
        found.append(verdict)
    return found


def waived_rules(snapshot: Snapshot, request: JobRequest, policy: Policy) -> dict[str, str]:
    """By rule that does not hold for a job's project now, who said so: in the policy, or by an answer."""
    waived = {
        exception.rule: say_allowed((exception,))
        for exception in standing_exceptions(snapshot, request.project)
        if not exception.amount
    }
    for exemption in policy.exemptions:
        if exemption.project == request.project and snapshot.at < exemption.until.timestamp():
            waived[exemption.rule] = (
                f"exempt until {exemption.until:%Y-%m-%d}, approved by {exemption.approved_by}: "
                f"{exemption.because}"
            )
    return waived


def exempt_by(snapshot: Snapshot, request: JobRequest, policy: Policy) -> tuple[str, ...]:
    """All that is allowed to a job's project beyond the rules: with the same, it is judged the same."""
    standing = standing_exceptions(snapshot, request.project)
    return (
        *waived_rules(snapshot, request, policy),
        *[exception.id for exception in standing if exception.amount],
    )


# What mends a quota: what jobs were promised and do not use comes back when they end.
_PAID_BACK = "a job of {} ends having used less than it may, "
_PAID_ANEW = "the week ends, or an exception is approved"
_ABOUT_PLACES = ("instance.type", "residency.team")


def allowed_models(request: JobRequest, policy: Policy) -> frozenset[str] | None:
    """GPU models that both the job and its team's policy accept; None: any."""
    team = policy.teams.get(request.project)
    wanted = frozenset(request.gpu_models) or None
    granted = frozenset(team.gpu) if team is not None and team.gpu else None
    if wanted is None or granted is None:
        return wanted or granted
    return wanted & granted


def allowed_regions(request: JobRequest, policy: Policy) -> tuple[str, ...] | None:
    """Regions where both the job and its team's policy want it to run; None: anywhere."""
    team = policy.teams.get(request.project)
    if team is None or not team.regions:
        return request.residency or None
    if not request.residency:
        return team.regions
    return tuple([region for region in request.residency if region in team.regions])


def judge_budget(
    snapshot: Snapshot, request: JobRequest, place: Place, power_fraction: float, policy: Policy
) -> list[Verdict]:
    """What the team has left this week, against the most this job could still use at this place."""
    team = policy.teams.get(request.project)
    if team is None:
        return []
    job = snapshot.jobs.get(request.job)
    saved = job.saved if job is not None else None
    seconds = request.max_duration_seconds
    promise = promise_at(snapshot.readings, snapshot.plant, request, place, power_fraction, seconds, saved)
    own = Usage() if job is None else job.promise
    account = snapshot.account(request.project)
    committed = account.committed_besides(own)
    verdicts = []
    for name, unit, rule in QUANTITIES:
        limit = getattr(team.quota, name)
        if limit is None:
            continue
        grants = granted(snapshot, request.project, rule)
        asked, taken = getattr(promise, name), getattr(committed, name)
        most = limit + sum(exception.amount for exception in grants)
        left = max(0.0, most - taken)
        numbers = {f"asked_{unit}": asked, f"left_{unit}": left, f"limit_{unit}": most}
        if asked <= left:
            verdict = Verdict.allow(rule, request.project, **numbers)
            if asked > limit - taken and grants:  # without them it would not start
                verdict = msgspec.structs.replace(verdict, outcome=Outcome.WARN, say=say_allowed(grants))
            verdicts.append(verdict)
            continue
        numbers[f"short_by_{unit}"] = asked - left
        if team.limit == "soft":
            verdicts.append(
                Verdict(rule=rule, subject=request.project, outcome=Outcome.WARN, numbers=numbers)
            )
        else:
            is_promised = asked <= most - getattr(account.used, name)
            change = f"{_PAID_BACK.format(request.project) if is_promised else ''}{_PAID_ANEW}"
            verdicts.append(Verdict.wait(rule, request.project, change=change, **numbers))
    return _exempt(snapshot, request, policy, verdicts)


def _judge_duration(request: JobRequest, policy: Policy) -> list[Verdict]:
    asked = request.max_duration_seconds
    team = policy.teams.get(request.project)
    counted = team is not None and team.limit == "hard" and team.quota.model_fields_set
    if asked is None and counted:
        return [
            Verdict(
                rule="duration.missing",
                subject=request.job,
                outcome=Outcome.REFUSE,
                say=f"{request.project} has a hard quota, so its jobs say how long they may run",
                change="set constraints.max_duration",
            )
        ]
    known = policy.classes.get(request.scheduling_class)
    most = known.max_duration if known is not None else None
    if most is None:
        return []
    if asked is None:
        return [
            Verdict(
                rule="duration.missing",
                subject=request.job,
                outcome=Outcome.REFUSE,
                say=f"jobs of class {request.scheduling_class} run {format_seconds(most)} at most",
                change=f"set constraints.max_duration to {format_seconds(most)} or less, or change the class",
            )
        ]
    if asked > most:
        change = f"max_duration of {most:g} s or less, or another class"
        return [
            Verdict.refuse(
                "duration.class", request.scheduling_class, change, asked_seconds=asked, most_seconds=most
            )
        ]
    return [Verdict.allow("duration.class", request.scheduling_class, asked_seconds=asked, most_seconds=most)]


def _judge_team_duration(request: JobRequest, policy: Policy) -> list[Verdict]:
    team = policy.teams.get(request.project)
    most, asked = (team.max_duration if team is not None else None), request.max_duration_seconds
    if most is None:
        return []
    if asked is None:
        return [
            Verdict(
                rule="duration.team",
                subject=request.project,
                outcome=Outcome.REFUSE,
                say=f"jobs of {request.project} run {format_seconds(most)} at most",
                change=f"set constraints.max_duration to {format_seconds(most)} or less",
            )
        ]
    if asked > most:
        change = f"max_duration of {format_seconds(most)} or less"
        numbers = {"asked_seconds": asked, "most_seconds": most}
        return [Verdict.refuse("duration.team", request.project, change, **numbers)]
    return [Verdict.allow("duration.team", request.project, asked_seconds=asked, most_seconds=most)]


def _judge_region(request: JobRequest, policy: Policy) -> list[Verdict]:
    regions = allowed_regions(request, policy)
    if regions is None or regions:
        return []
    granted = ", ".join(policy.teams[request.project].regions)
    return [
        Verdict(
            rule="residency.team",
            subject=", ".join(request.residency),
            outcome=Outcome.REFUSE,
            say=f"{request.project} may run in {granted}",
            change=f"ask for residency in {granted}",
        )
    ]


def _judge_instance_type(request: JobRequest, policy: Policy) -> list[Verdict]:
    team = policy.teams.get(request.project)
    models = allowed_models(request, policy)
    if models is not None and not models:
        granted = ", ".join(team.gpu) if team else "none"
        return [
            Verdict(
                rule="instance.type",
                subject=", ".join(request.gpu_models),
                outcome=Outcome.REFUSE,
                say=f"{request.project} may use {granted}",
                change=f"ask for {granted}",
            )
        ]
    return []
