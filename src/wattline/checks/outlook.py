"""Outlook: what would a run that nobody has submitted yet do here, when would it start, and at what price?

It is laid behind all that waits, in a copy of the state; the same judges and the same twin then answer as for
a run that was submitted. What is not known is None and named, never a silent zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

from wattline.checks.preflight import Preflight
from wattline.policy import Explanation, dominant, estimate_usage, explain, judge_request
from wattline.spec import Pipeline, Policy
from wattline.state import (
    JobRequest,
    Outcome,
    RunSubmitted,
    Snapshot,
    State,
    Usage,
    Verdict,
    dump_state,
    load_state,
    requests_of,
)
from wattline.twin.forecast import TwinForecaster
from wattline.twin.remaining import gather_lasted
from wattline.units import SECONDS_PER_HOUR

Answer = Literal["pass", "warn", "block"]
# Somebody waits for the answer.
_FORECAST_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOutlook:
    """One phase: whether it fits, when it would start, how long it takes and what it then uses."""

    phase: str
    say: str
    verdicts: tuple[Verdict, ...]
    explained: Explanation
    wall_seconds: float | None
    wall_from: str  # recorded runs | constraints.max_duration | nothing
    usage: Usage | None
    peak_watts: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    verdict: Answer
    at: float
    phases: tuple[PhaseOutlook, ...]
    queue_p50_minutes: float | None
    queue_p90_minutes: float | None
    usage: Usage | None
    wall_hours: float | None
    peak_watts: float | None
    not_estimated: tuple[str, ...]


def look_at_run(
    state: State, policy: Policy, pipeline: Pipeline, checked: Preflight, at: float, *, approved: bool
) -> Outlook:
    """All that can be said of a pipeline against a state as it is now."""
    name = pipeline.pipeline  # runs that were submitted have longer ones
    requests = requests_of(pipeline, name, approved=approved)
    submitted = RunSubmitted(at=at, run=name, pipeline=name, jobs=requests, project=pipeline.project)
    after = load_state(state.plant.facility, dump_state(state))
    forecast = TwinForecaster(budget_seconds=_FORECAST_SECONDS).forecast_run(state, policy, submitted)
    after.fold([submitted] if forecast is None else [submitted, forecast])
    snapshot = Snapshot(after, at)
    lasted = gather_lasted(state, at)
    phases = tuple(
        _look_at_phase(
            snapshot,
            policy,
            request,
            [one.seconds for one in lasted.get((pipeline.pipeline, request.phase), ()) if not one.goes_on],
        )
        for request in requests
    )
    first = [phase for phase, request in zip(phases, requests, strict=True) if not request.after]
    p50, p90 = (_latest_minutes(first, name, at) for name in ("p50", "p90"))
    usages = [phase.usage for phase in phases]
    walls = [phase.wall_seconds for phase in phases]
    peaks = [phase.peak_watts for phase in phases]
    usage = None if None in usages else _total([usage for usage in usages if usage is not None])
    wall_hours = None if None in walls else sum(wall for wall in walls if wall is not None) / SECONDS_PER_HOUR
    peak_watts = None if None in peaks else max(peak for peak in peaks if peak is not None)
    found = {
        "queue_minutes.p50": p50,
        "queue_minutes.p90": p90,
        "gpu_hours": usage,
        "wall_hours": wall_hours,
        "peak_watts": peak_watts,
    }
    return Outlook(
        verdict=_answer(checked, phases),
        at=at,
        phases=phases,
        queue_p50_minutes=p50,
        queue_p90_minutes=p90,
        usage=usage,
        wall_hours=wall_hours,
        peak_watts=peak_watts,
        not_estimated=tuple([name for name, value in found.items() if value is None]),
    )


def _look_at_phase(
    snapshot: Snapshot, policy: Policy, request: JobRequest, recorded: list[float]
) -> PhaseOutlook:
    wall, source = request.max_duration_seconds, "constraints.max_duration"
    if recorded:
        wall, source = median(recorded), "recorded runs"
    usage, peak_watts = estimate_usage(snapshot, policy, request, wall)
    explained = explain(snapshot, policy, request.job)
    say, verdicts = explained.say, explained.verdicts
    if request.after:  # as if its turn had come: what is refused then is better known now
        verdicts = judge_request(snapshot, policy, request, None).verdicts
        reason = dominant(verdicts)
        say = reason.sentence() if reason is not None and reason.outcome is Outcome.REFUSE else say
    return PhaseOutlook(
        phase=request.phase,
        say=say,
        verdicts=verdicts,
        explained=explained,
        wall_seconds=wall,
        wall_from=source if wall is not None else "nothing",
        usage=usage,
        peak_watts=peak_watts,
    )


def _latest_minutes(phases: list[PhaseOutlook], name: str, at: float) -> float | None:
    """How long the last of some phases waits; None where that is not known of one of them."""
    times: list[float | None] = [getattr(phase.explained.eta, name, None) for phase in phases]
    known = [time for time in times if time is not None]
    if not known or len(known) < len(times):
        return None
    return round(max(0.0, max(known) - at) / 60.0, 2)


def _total(usages: list[Usage]) -> Usage:
    total = Usage()
    for usage in usages:
        total = total.plus(usage)
    return total


def _answer(checked: Preflight, phases: tuple[PhaseOutlook, ...]) -> Answer:
    verdicts = [verdict for phase in phases for verdict in phase.verdicts]
    if not checked.passed or any(verdict.outcome is Outcome.REFUSE for verdict in verdicts):
        return "block"
    warned = any(check.outcome == "warn" for check in checked.checks)
    return "warn" if warned or any(verdict.outcome is Outcome.WARN for verdict in verdicts) else "pass"


def said_by_policy(verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    """What rules, classes, quotas and budgets said, without what is said of places."""
    return [verdict for verdict in verdicts if not verdict.rule.startswith(_OF_PLACES)]


_OF_PLACES = ("power.", "cooling.", "network.", "storage.", "heat.", "gpus", "cpus", "locality")
