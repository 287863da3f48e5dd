"""Permission: may this be asked at all? Classes, durations, instance types, regions, rules, quotas."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import msgspec

from wattline.policy.permitting.exceptions import (
    QUANTITIES,
    granted,
    limit_of,
    say_allowed,
    standing_exceptions,
)
from wattline.spec import RULE_STRUCTS, ExpressionError, compile_expression
from wattline.spec.policy import Mode, Policy
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
            return _exempt(snapshot, request, policy, _judge_rules(snapshot, request, policy))
    verdicts = [
        *_judge_duration(request, policy),
        *_judge_team_duration(request, policy),
        *_judge_instance_type(request, policy),
        *_judge_region(request, policy),
        *_judge_rules(snapshot, request, policy),
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
    committed = snapshot.account(request.project).committed_besides(own)
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
            verdicts.append(Verdict.wait(rule, request.project, change="the week ends", **numbers))
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


def _judge_rules(snapshot: Snapshot, request: JobRequest, policy: Policy) -> list[Verdict]:
    if not policy.rules:
        return []
    if request.project in policy.teams:  # what is left of its quota changes all the time
        rulings = _rule(snapshot, request, policy)
    else:
        asked = _ruled_on(request)
        known = _rulings_of(policy)
        found = known.get(asked)
        if found is None:
            if len(known) >= _MOST_RULINGS:
                known.clear()
            found = known[asked] = _rule(snapshot, request, policy)
        rulings = found
    return [
        Verdict(rule=f"rule.{name}", subject=request.job, outcome=outcome, say=say)
        for name, outcome, say in rulings
    ]


Ruling = tuple[str, Outcome, str]  # name of the rule, what it comes to, what it says

# What of a request rules may speak of; see `rule_values`.
_ruled_on: Callable[[JobRequest], tuple[object, ...]] = attrgetter(
    "gpus",
    "gpu_models",
    "priority",
    "scheduling_class",
    "owner",
    "project",
    "peak_watts",
    "max_duration_seconds",
    "mode",
    "phase",
    "model",
    "intended_use",
    "approved",
)
_MOST_RULINGS = 100_000
_MOST_POLICIES = 8
_rulings: list[tuple[Policy, dict[tuple[object, ...], tuple[Ruling, ...]]]] = []


def _rulings_of(policy: Policy) -> dict[tuple[object, ...], tuple[Ruling, ...]]:
    """What a policy's rules came to before: expressions are evaluated when their inputs change."""
    for known, rulings in _rulings:
        if known is policy:
            return rulings
    rulings = {}
    _rulings.insert(0, (policy, rulings))
    del _rulings[_MOST_POLICIES:]
    return rulings


def _rule(snapshot: Snapshot, request: JobRequest, policy: Policy) -> tuple[Ruling, ...]:
    values = rule_values(snapshot, request, policy)
    found = []
    for rule in policy.rules:
        blocks = rule.mode in (Mode.BLOCK, Mode.ENFORCE)
        try:
            if not compile_expression(rule.when, (), RULE_STRUCTS).holds(values):
                continue
            outcome, say = (Outcome.REFUSE if blocks else Outcome.WARN), rule.say
        except ExpressionError as error:
            outcome, say = (
                (Outcome.WAIT if blocks else Outcome.WARN),
                f"could not be evaluated: {error.message}",
            )
        found.append((rule.name, outcome, say))
    return tuple(found)


def rule_values(snapshot: Snapshot, request: JobRequest, policy: Policy) -> dict[str, object]:
    """What a rule's `when` may speak of."""
    committed = snapshot.account(request.project).committed
    return {
        "job": {
            "gpus": request.gpus,
            "gpu": list(request.gpu_models),
            "priority": request.priority.value,
            "class": request.scheduling_class,
            "owner": request.owner,
            "project": request.project,
            "peak_watts": request.peak_watts or 0.0,
            "max_duration_seconds": request.max_duration_seconds or 0.0,
            "mode": request.mode,
            "phase": request.phase,
            "model": request.model,
            "intended_use": request.intended_use,
            "approved": request.approved,
        },
        "team": {
            f"{name}_left": _left(limit_of(snapshot, policy, request.project, name), committed, name)
            for name, _, _ in QUANTITIES
        },
    }


def _left(limit: float | None, committed: Usage, name: str) -> float:
    """What is left of a quota; a team without one has more than anybody asks."""
    return 1e12 if limit is None else max(0.0, limit - float(getattr(committed, name)))
