"""Making the report: preflight, what would be decided, what it will cost, what changes against the base."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from wattline.checks.base import FoundBase, Standing
from wattline.checks.comparing import NOTHING, compare, is_worth_a_comment
from wattline.checks.estimate import Estimated, estimate_run, goal_of, span_of, trials_of, weigh_runs
from wattline.checks.gating import judge_estimate
from wattline.checks.lanes import find_lanes, is_too_long
from wattline.checks.options import find_options, is_about_asking
from wattline.checks.outlook import Outlook, look_at_run
from wattline.checks.preflight import Asking, preflight
from wattline.checks.report import (
    Answer,
    Base,
    Check,
    Difference,
    Estimate,
    Marginal,
    Option,
    PhaseReport,
    Report,
    Said,
    Span,
)
from wattline.errors import DocumentError
from wattline.spec import Pipeline, Policy, read_pipeline
from wattline.spec.policy import Mode
from wattline.state import Outcome, State

_Outcome = Literal["allow", "warn", "wait", "refuse"]
_OUTCOMES: dict[Outcome, _Outcome] = {
    Outcome.ALLOW: "allow",
    Outcome.WARN: "warn",
    Outcome.PRESS: "wait",
    Outcome.WAIT: "wait",
    Outcome.REFUSE: "refuse",
}
_Mode = Literal["report", "warn", "block", "enforce"]
_MODES: dict[Mode, _Mode] = {
    Mode.REPORT: "report",
    Mode.WARN: "warn",
    Mode.BLOCK: "block",
    Mode.ENFORCE: "enforce",
}
_LARGEST_PARAMS_BYTES = 1 << 20
_WORST: dict[Mode, Answer] = {Mode.REPORT: "pass", Mode.WARN: "warn"}
_RANKS: dict[Answer, int] = {"pass": 0, "warn": 1, "block": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A pipeline in its folder, and what it is held against."""

    pipeline: Pipeline
    folder: Path
    document: str
    standing: Standing
    state: State
    policy: Policy
    at: float
    against: str
    emulated: bool
    source: Collection[str] | None
    environment: Mapping[str, str]
    approved: bool = False
    has_secrets: bool = True
    rehearse: bool = False


def make_report(question: Question, base: FoundBase | None) -> Report:
    """All that is known of a change before it runs."""
    pipeline, policy, state = question.pipeline, question.policy, question.state
    checks = preflight(
        Asking(
            pipeline=pipeline,
            policy=policy,
            folder=question.folder,
            document=question.document,
            source=question.source,
            sites=state.plant.sites,
            devices={
                spot.node.device.name: spot.node.device for spot in state.plant.spots if spot.node.device
            },
            environment=question.environment,
            approved=question.approved,
            has_secrets=question.has_secrets,
            rehearse=question.rehearse,
        )
    ).checks
    outlook = look_at_run(state, policy, pipeline, question.at, approved=question.approved)
    estimated = _estimate(question, pipeline, question.folder)
    estimate = _with_queue(estimated.estimate, outlook.queue)
    compared = _compare(question, base, estimate)
    diff = compared[1] if compared is not None else {}
    said = (*judge_estimate(policy, estimate, diff), *_said_by_policy(outlook, policy))
    verdict, reasons = _answer(checks, said, policy)
    return Report(
        pipeline=pipeline.pipeline,
        file=question.standing.file,
        commit=question.standing.commit,
        dirty=question.standing.dirty,
        at=_iso(question.at),
        against=question.against,
        policy_name=policy.policy,
        verdict=verdict,
        reasons=reasons,
        preflight=checks,
        estimate=estimate,
        phases=tuple(_phases(outlook, estimated)),
        base=compared[0] if compared is not None else None,
        diff=diff,
        policy=said,
        options=tuple(_options(question, outlook, estimated)),
        marginal=_marginal(state, pipeline),
        worth_a_comment=is_worth_a_comment(diff, policy.review.comment_above, verdict),
        emulated=question.emulated,
        not_estimated=tuple(estimate.not_estimated),
    )


def report_removed(question: Question, base: FoundBase) -> Report:
    """The pipeline is no longer there: what it would have cost is saved."""
    found, _ = _estimate_base(question, base)
    diff = compare(found, NOTHING) if found is not None else {}
    return Report(
        pipeline=question.pipeline.pipeline,
        file=question.standing.file,
        commit=question.standing.commit,
        dirty=question.standing.dirty,
        at=_iso(question.at),
        against=question.against,
        policy_name=question.policy.policy,
        verdict="pass",
        estimate=NOTHING,
        base=base.described(found),
        diff=diff,
        worth_a_comment=is_worth_a_comment(diff, question.policy.review.comment_above, "pass"),
    )


def _compare(
    question: Question, base: FoundBase | None, head: Estimate
) -> tuple[Base, dict[str, Difference]] | None:
    if base is None:
        return None
    if base.pipeline is None:
        return base.described(None), compare(NOTHING, head)
    found, wrong = _estimate_base(question, base)
    described = base.described(found)
    if wrong:
        described = msgspec.structs.replace(described, say="; ".join(filter(None, (base.say, wrong))))
    return described, compare(found, head) if found is not None else {}


def _estimate_base(question: Question, base: FoundBase) -> tuple[Estimate | None, str]:
    """What the base costs by the same records, or why that is not known."""
    if base.estimate is not None or base.document is None:
        return base.estimate, ""
    try:
        pipeline = read_pipeline(base.document)
    except DocumentError as error:
        first = str(error).splitlines()[0].removeprefix(f"{base.document}:")
        return None, f"the base's pipeline is wrong, line {first}"
    return _estimate(question, pipeline, base.document.parent).estimate, ""


def _estimate(question: Question, pipeline: Pipeline, folder: Path) -> Estimated:
    return estimate_run(
        question.state,
        question.policy,
        pipeline,
        question.at,
        params=_read_params(folder / pipeline.params) if pipeline.params else None,
        approved=question.approved,
    )


def _read_params(path: Path) -> dict[str, Any] | None:
    """What is not there, or no JSON, is preflight's business."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_LARGEST_PARAMS_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _with_queue(estimate: Estimate, queue: Span) -> Estimate:
    missing = {
        f"queue_minutes.{name}": "no forecast reaches that far"
        for name in ("p50", "p90")
        if getattr(queue, name) is None
    }
    return msgspec.structs.replace(
        estimate, queue_minutes=queue, not_estimated={**estimate.not_estimated, **missing}
    )


def _phases(outlook: Outlook, estimated: Estimated) -> Iterator[PhaseReport]:
    for looked, cost in zip(outlook.phases, estimated.phases, strict=True):
        eta = looked.eta
        yield PhaseReport(
            phase=looked.request.phase,
            say=looked.say,
            starts_p50=_iso(eta.p50) if eta is not None and eta.p50 is not None else None,
            starts_p90=_iso(eta.p90) if eta is not None and eta.p90 is not None else None,
            wall_hours=span_of(cost.lasting),
            wall_from=cost.lasting.source,
            at_most=cost.lasting.at_most,
            peak_watts=cost.peak_watts,
            gpu_hours=cost.gpu_hours,
            cost_usd=cost.cost.total,
        )


def _said_by_policy(outlook: Outlook, policy: Policy) -> Iterator[Said]:
    """What rules, classes, quotas and budgets said, without what is said of places."""
    modes = {f"rule.{rule.name}": rule.mode for rule in policy.rules}
    for phase in outlook.phases:
        for verdict in phase.verdicts:
            if not is_about_asking(verdict):
                continue
            yield Said(
                phase=phase.request.phase,
                rule=verdict.rule,
                mode=_MODES[modes.get(verdict.rule, Mode.ENFORCE)],
                outcome=_OUTCOMES[verdict.outcome],
                message=verdict.sentence(),
                fix=verdict.change,
            )


def _answer(
    checks: tuple[Check, ...], said: tuple[Said, ...], policy: Policy
) -> tuple[Answer, tuple[str, ...]]:
    """The worst that was found, as far as the team's review lets it go; and why, the worst first."""
    found: list[tuple[Answer, str]] = [
        ("block" if check.outcome == "fail" else "warn", f"{check.title}: {check.message}")
        for check in checks
        if check.outcome in ("fail", "warn")
    ]
    for each in said:
        if each.outcome == "refuse":
            found.append(("block", f"{each.phase}: {each.message}"))
        elif each.outcome == "warn" and each.mode != "report":
            found.append(("warn", f"{each.phase}: {each.message}"))
    found.sort(key=lambda one: -_RANKS[one[0]])
    worst: Answer = found[0][0] if found else "pass"
    most = _WORST.get(policy.review.mode, "block")
    return min(worst, most, key=_RANKS.__getitem__), tuple(dict.fromkeys(reason for _, reason in found))


def _options(question: Question, outlook: Outlook, estimated: Estimated) -> Iterator[Option]:
    policy = question.policy
    for looked, cost in zip(outlook.phases, estimated.phases, strict=True):
        yield from find_options(outlook.snapshot, policy, looked.request, cost.lasting.p50_seconds)
        if is_too_long(looked):
            yield from find_lanes(question.state, policy, outlook, looked)


def _marginal(state: State, pipeline: Pipeline) -> Marginal | None:
    goal = goal_of(pipeline.gates)
    return weigh_runs(goal, trials_of(state, pipeline.model, goal.metric)) if goal is not None else None


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
