"""Lanes: where a queue is too long for a run, which lesser request would start sooner?"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wattline.checks.outlook import Outlook, PhaseOutlook
from wattline.checks.report import Effect, Option
from wattline.policy.explaining.lanes import lesser_requests
from wattline.policy.placing.judging import judge_request
from wattline.spec import Policy
from wattline.state import JobRequest, Outcome, State
from wattline.twin.forecast import TwinForecaster

# Somebody waits for the answer: so many changes are played through, so long each.
_MOST_TRIED = 4
_FORECAST_SECONDS = 0.5
_LEAST_SAVED = 0.1  # of the wait: less is no other lane


def is_too_long(phase: PhaseOutlook) -> bool:
    """Whether a bound of the policy's queues speaks against it."""
    return any(verdict.rule.startswith("queue.") and verdict.change for verdict in phase.verdicts)


def find_lanes(state: State, policy: Policy, outlook: Outlook, phase: PhaseOutlook) -> Iterator[Option]:
    """Another class or fewer GPUs, played through in place of what was asked; what is no sooner is left."""
    at = outlook.submitted.at
    asked_at = phase.eta.p50 if phase.eta is not None else None
    most = None if asked_at is None else (1.0 - _LEAST_SAVED) * (asked_at - at)
    for option, request in list(lesser_requests(policy, phase.request))[:_MOST_TRIED]:
        judged = judge_request(outlook.snapshot, policy, request, None)
        if any(verdict.outcome is Outcome.REFUSE for verdict in judged.verdicts):
            continue
        starts_at = _starts_at(state, policy, outlook, request)
        if starts_at is not None and (most is None or starts_at - at <= most):
            effect = Effect(starts_minutes=round(max(0.0, starts_at - at) / 60.0, 2))
            yield Option(phase=request.phase, change=option.change, effect=effect)


def _starts_at(state: State, policy: Policy, outlook: Outlook, request: JobRequest) -> float | None:
    """When half of the futures have started it."""
    jobs = tuple([request if one.job == request.job else one for one in outlook.submitted.jobs])
    submitted = msgspec.structs.replace(outlook.submitted, jobs=jobs)
    forecaster = TwinForecaster(budget_seconds=_FORECAST_SECONDS)
    found = forecaster.forecast_run(state, policy, submitted)
    starts = found.starts if found is not None else ()
    return next((expected.p50_at for expected in starts if expected.job == request.job), None)
