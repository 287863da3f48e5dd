"""Estimate: what will a run take and cost, phase by phase and in all, by everything that is recorded?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattline.checks.estimate.accuracy import Accuracy, look_back
from wattline.checks.estimate.costing import PhaseCost, place_alone, price_phase
from wattline.checks.estimate.durations import Lasting, combine, planned_steps, predict_lasting
from wattline.checks.estimate.quota import left_of
from wattline.checks.estimate.records import gather_records, gather_runs
from wattline.checks.report import Cost, Estimate, Span
from wattline.spec import Pipeline, Policy
from wattline.state import Snapshot, State, requests_of
from wattline.twin.experience import experience_of
from wattline.units import SECONDS_PER_HOUR

_KINDS = ("compute", "energy", "transfer", "storage", "total")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """Of a run, each phase of it, and how good such estimates were."""

    phases: tuple[PhaseCost, ...]
    lasting: Lasting
    accuracy: Accuracy
    estimate: Estimate  # without its queue: the forecast knows that


def estimate_run(
    state: State,
    policy: Policy,
    pipeline: Pipeline,
    at: float,
    *,
    params: Mapping[str, Any] | None = None,
    approved: bool = False,
) -> Estimated:
    """By what `state` records of earlier runs. `params` are the run's own, where its pipeline names some."""
    snapshot, plant = Snapshot(state, at), state.plant
    accuracy = look_back(gather_runs(state, pipeline.pipeline, at), plant)
    experience = experience_of(state, at)
    phases = []
    for request in requests_of(pipeline, pipeline.pipeline, approved=approved):
        records = gather_records(state, pipeline.pipeline, request.phase, at)
        lasting = predict_lasting(
            request,
            records,
            at=at,
            steps=planned_steps(request.phase, params or {}),
            level=accuracy.level,
            experience=experience,
        )
        phases.append(
            price_phase(
                request,
                lasting,
                records,
                plant=plant,
                place=place_alone(snapshot, policy, request),
                phase=pipeline.phases[request.phase],
            )
        )
    lasting = combine(
        {phase.phase: phase.lasting for phase in phases},
        {name: phase.after for name, phase in pipeline.phases.items()},
        pipeline.order(),
    )
    left = left_of(snapshot, policy, pipeline.project)
    return Estimated(
        phases=tuple(phases),
        lasting=lasting,
        accuracy=accuracy,
        estimate=Estimate(
            at_most=lasting.at_most,
            gpu_hours=_sum([phase.gpu_hours for phase in phases]),
            wall_hours=_hours(lasting.p50_seconds),
            wall=span_of(lasting),
            energy_kwh=_sum([phase.energy_kwh for phase in phases]),
            carbon_kg=_sum([phase.carbon_kg for phase in phases]),
            cost_usd=Cost(**{kind: _sum([getattr(phase.cost, kind) for phase in phases]) for kind in _KINDS}),
            peak_watts=_most([phase.peak_watts for phase in phases]),
            quota_left=left,
            confidence=accuracy.confidence if accuracy.compared else None,
            not_estimated=_missing(phases, lasting, accuracy)
            | ({} if left is not None else {"quota_left": f"the policy sets {pipeline.project} no quota"}),
        ),
    )


def span_of(lasting: Lasting) -> Span:
    """In hours."""
    return Span(p50=_hours(lasting.p50_seconds), p90=_hours(lasting.p90_seconds))


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / SECONDS_PER_HOUR


def _sum(values: Sequence[float | None]) -> float | None:
    """None where one is not known: a part is not the whole."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _most(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


def _missing(phases: Sequence[PhaseCost], lasting: Lasting, accuracy: Accuracy) -> dict[str, str]:
    """By name, why; the first phase that lacks something speaks."""
    found: dict[str, str] = {}
    if lasting.p50_seconds is None:
        found["wall"] = lasting.source
    for phase in phases:
        for name, why in phase.not_estimated.items():
            found.setdefault(name, f"{phase.phase}: {why}")
    if accuracy.say:
        found["confidence"] = accuracy.say
    return found
