"""Permission: may this be asked at all? Metadata, classes, durations, instance types, rules, quotas."""

from __future__ import annotations

from wattline.spec import RULE_STRUCTS, ExpressionError, compile_expression
from wattline.spec.policy import Mode, Policy
from wattline.state import JobRequest, Outcome, Place, Snapshot, Usage, Verdict
from wattline.state.account import promise_of
from wattline.units import format_seconds

_QUANTITIES = (("gpu_hours", "gpu_hours"), ("usd", "usd"), ("kwh", "kwh"), ("kg_co2e", "kg"))


def judge_permission(snapshot: Snapshot, request: JobRequest, policy: Policy) -> list[Verdict]:
    """What the policy says of the request itself, wherever it would run."""
    return [
        *_judge_duration(request, policy),
        *_judge_instance_type(request, policy),
        *_judge_rules(snapshot, request, policy),
    ]


def allowed_models(request: JobRequest, policy: Policy) -> frozenset[str] | None:
    """GPU models that both the job and its team's policy accept; None: any."""
    team = policy.teams.get(request.project)
    wanted = frozenset(request.gpu_models) or None
    granted = frozenset(team.gpu) if team is not None and team.gpu else None
    if wanted is None or granted is None:
        return wanted or granted
    return wanted & granted


def judge_budget(
    snapshot: Snapshot, request: JobRequest, place: Place, peak_watts: float, policy: Policy
) -> list[Verdict]:
    """What the team has left this week, against the most this job could still use at this place."""
    team = policy.teams.get(request.project)
    if team is None:
        return []
    promise = promise_of(request, place, snapshot.plant, peak_watts, request.max_duration_seconds)
    committed = snapshot.account(request.project).committed_besides(request.job)
    verdicts = []
    for name, unit in _QUANTITIES:
        limit = getattr(team.quota, name)
        if limit is None:
            continue
        rule = "quota.gpu_hours" if name == "gpu_hours" else f"budget.{name}"
        asked, left = getattr(promise, name), max(0.0, limit - getattr(committed, name))
        numbers = {f"asked_{unit}": asked, f"left_{unit}": left, f"limit_{unit}": limit}
        if asked <= left:
            verdicts.append(Verdict.allow(rule, request.project, **numbers))
            continue
        numbers[f"short_by_{unit}"] = asked - left
        if team.limit == "soft":
            verdicts.append(
                Verdict(rule=rule, subject=request.project, outcome=Outcome.WARN, numbers=numbers)
            )
        else:
            verdicts.append(Verdict.wait(rule, request.project, change="the week ends", **numbers))
    return verdicts


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
    values = rule_values(snapshot, request, policy)
    verdicts = []
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
        verdicts.append(Verdict(rule=f"rule.{rule.name}", subject=request.job, outcome=outcome, say=say))
    return verdicts


def rule_values(snapshot: Snapshot, request: JobRequest, policy: Policy) -> dict[str, object]:
    """What a rule's `when` may speak of."""
    committed = snapshot.account(request.project).committed
    team = policy.teams.get(request.project)
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
            f"{name}_left": _left(getattr(team.quota, name) if team else None, committed, name)
            for name, _ in _QUANTITIES
        },
    }


def _left(limit: float | None, committed: Usage, name: str) -> float:
    """What is left of a quota; a team without one has more than anybody asks."""
    return 1e12 if limit is None else max(0.0, limit - float(getattr(committed, name)))
