"""Durations: how long will a phase take, and where is that known from?

Recorded runs of the same phase say most, scaled by what changed. Without any, the longest that it may take is
a bound, and without that, jobs of its project with as many GPUs say something. Otherwise nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wattline.checks.estimate.fitting import fit_records
from wattline.checks.estimate.records import Record
from wattline.state import JobRequest
from wattline.twin.experience import P90, Experience, group_of

# Fewer jobs of a project with as many GPUs say nothing of a phase that never ran.
_LEAST_SIMILAR = 20.0
_LARGEST_STEPS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """Half of such runs take no longer than the one, nine in ten no longer than the other."""

    p50_seconds: float | None = None
    p90_seconds: float | None = None
    source: str = ""  # what it was taken from, or why it is not known
    runs: int = 0  # recorded ones behind it
    at_most: bool = False  # a bound: both are the longest that it may take


def predict_lasting(
    request: JobRequest,
    records: Sequence[Record],
    *,
    at: float,
    steps: int | None = None,
    level: float = P90,
    experience: Experience | None = None,
) -> Lasting:
    """`level` is the quantile that has lately covered nine in ten; `steps` what its parameters ask for."""
    known = [record for record in records if record.ended_at <= at]
    bound = request.max_duration_seconds
    if known:
        return _from_records(known, steps, request.gpus, level, bound)
    if bound is not None:
        return Lasting(
            p50_seconds=bound,
            p90_seconds=bound,
            source="max_duration: no recorded runs",
            at_most=True,
        )
    group = group_of(request.project, request.gpus)
    if experience is not None and experience.history.weight(group) >= _LEAST_SIMILAR:
        expected = experience.expect(group, at)
        if expected is not None:
            return Lasting(
                p50_seconds=expected.p50_seconds,
                p90_seconds=expected.p90_seconds,
                source=f"jobs of {request.project} with {_count(request.gpus, 'GPU')}: no recorded runs",
            )
    return Lasting(source="no recorded runs and no constraints.max_duration")


def _from_records(
    records: Sequence[Record], steps: int | None, gpus: int, level: float, bound: float | None
) -> Lasting:
    fitted = fit_records(records, steps, gpus)
    p50, p90 = fitted.p50_seconds, fitted.quantile_seconds(level)
    scaled = f", scaled to {' and '.join(fitted.scaled)}" if fitted.scaled else ""
    if bound is not None:  # it is stopped then
        p50, p90 = min(p50, bound), min(p90, bound)
    return Lasting(
        p50_seconds=p50,
        p90_seconds=p90,
        source=f"{_count(len(records), 'recorded run')}{scaled}",
        runs=len(records),
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def planned_steps(phase: str, params: Mapping[str, Any]) -> int | None:
    """How many steps the parameters ask of a phase, where they say so in one of the usual ways."""
    for name in (f"{phase}_steps", "steps", "max_steps", "total_steps", "num_steps"):
        value = params.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LARGEST_STEPS:
            return value
    return None


def combine(
    lastings: Mapping[str, Lasting], after: Mapping[str, Sequence[str]], order: Sequence[str]
) -> Lasting:
    """Of a whole run without its waits: the longest way through its phases.

    Phases are taken as independent, so what each may take beyond its median adds up in squares.
    """
    unknown = [phase for phase in order if lastings[phase].p50_seconds is None]
    if unknown:
        return Lasting(source=f"{unknown[0]}: {lastings[unknown[0]].source}")
    ends: dict[str, tuple[float, float]] = {}
    for phase in order:
        begins, doubt = max((ends[earlier] for earlier in after.get(phase, ())), default=(0.0, 0.0))
        lasting = lastings[phase]
        p50, p90 = lasting.p50_seconds or 0.0, lasting.p90_seconds or 0.0
        ends[phase] = (begins + p50, doubt + (p90 - p50) ** 2)
    p50 = max(end for end, _ in ends.values())
    return Lasting(
        p50_seconds=p50,
        p90_seconds=max(end + doubt**0.5 for end, doubt in ends.values()),
        source="the longest way through its phases",
        runs=min(lasting.runs for lasting in lastings.values()),
        at_most=any(lasting.at_most for lasting in lastings.values()),
    )
