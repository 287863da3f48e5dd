"""Outlook: what would be decided here about a run that nobody has submitted yet, and when would it start?

It is laid behind all that waits, in a copy of the state; the same judges and the same twin then answer as for
a run that was submitted.
"""

from __future__ import annotations

from dataclasses import dataclass

from wattline.checks.report import Span
from wattline.policy import Eta, Explanation, dominant, explain, judge_request
from wattline.policy.explaining.saturation import judge_queue
from wattline.spec import Pipeline, Policy
from wattline.state import (
    JobRequest,
    Outcome,
    RunSubmitted,
    Snapshot,
    State,
    Verdict,
    dump_state,
    load_state,
    requests_of,
)
from wattline.twin.forecast import TwinForecaster

# Somebody waits for the answer.
_FORECAST_SECONDS = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOutlook:
    """One phase: what the judges say of it, and when it would start."""

    request: JobRequest
    say: str
    verdicts: tuple[Verdict, ...]
    eta: Eta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    snapshot: Snapshot  # with the run in it, behind all that waits
    phases: tuple[PhaseOutlook, ...]
    submitted: RunSubmitted
    queue: Span  # minutes until its first phases have started


def look_at_run(state: State, policy: Policy, pipeline: Pipeline, at: float, *, approved: bool) -> Outlook:
    name = pipeline.pipeline  # runs that were submitted have longer ones
    requests = requests_of(pipeline, name, approved=approved)
    submitted = RunSubmitted(at=at, run=name, pipeline=name, jobs=requests, project=pipeline.project)
    after = load_state(state.plant.facility, dump_state(state))
    forecast = TwinForecaster(budget_seconds=_FORECAST_SECONDS).forecast_run(state, policy, submitted)
    after.fold([submitted] if forecast is None else [submitted, forecast])
    snapshot = Snapshot(after, at)
    phases = tuple([_look_at_phase(snapshot, policy, request) for request in requests])
    first = [phase.eta for phase in phases if not phase.request.after]
    queue = Span(
        p50=_latest_minutes([eta.p50 if eta else None for eta in first], at),
        p90=_latest_minutes([eta.p90 if eta else None for eta in first], at),
    )
    return Outlook(snapshot=snapshot, phases=phases, submitted=submitted, queue=queue)


def _look_at_phase(snapshot: Snapshot, policy: Policy, request: JobRequest) -> PhaseOutlook:
    explained: Explanation = explain(snapshot, policy, request.job)
    say, verdicts = explained.say, explained.verdicts
    if policy.bounds_queues and not request.after and explained.blocked_by is not None:
        verdicts = (*verdicts, *judge_queue(snapshot, policy, snapshot.job(request.job)))
        refusal = next((one for one in verdicts if one.rule.startswith("queue.") and one.change), None)
        say = f"{refusal.sentence()}; {refusal.change}" if refusal is not None else say
    if request.after:  # as if its turn had come: what is refused then is better known now
        verdicts = judge_request(snapshot, policy, request, None).verdicts
        reason = dominant(verdicts)
        say = reason.sentence() if reason is not None and reason.outcome is Outcome.REFUSE else say
    return PhaseOutlook(request=request, say=say, verdicts=verdicts, eta=explained.eta)


def _latest_minutes(times: list[float | None], at: float) -> float | None:
    """How long the last of some waits; None where that is not known of one of them."""
    known = [time for time in times if time is not None]
    if not known or len(known) < len(times):
        return None
    return round(max(0.0, max(known) - at) / 60.0, 2)
