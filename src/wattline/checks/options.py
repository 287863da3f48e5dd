"""Options: what could be changed so that a phase may run, starts sooner, or costs less?

Each is tried: the request with the change is judged on the very snapshot, by the judges that would admit it.
What does not help is not offered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from wattline.checks.report import Effect, Option
from wattline.physics import predict_speed
from wattline.policy import choose_options, judge_request, usage_alone
from wattline.spec import Policy
from wattline.state import JobRequest, Outcome, Snapshot, Usage, Verdict
from wattline.units import format_seconds, format_share

replace = msgspec.structs.replace

_MOST = 6
_CAP = 0.8  # where a GPU gives up little speed for much power
# Less is not worth a change: of what it costs, in USD, in kilograms.
_LEAST_SHARE, _LEAST_USD, _LEAST_KG = 0.01, 0.05, 0.05


@dataclass(frozen=True, slots=True)
class _Change:
    say: str
    request: JobRequest
    power_fraction: float = 1.0


def find_options(
    snapshot: Snapshot, policy: Policy, request: JobRequest, wall_seconds: float | None
) -> tuple[Option, ...]:
    """What helps one phase; `wall_seconds` is how long it takes, where that is known."""
    timed = replace(request, max_duration_seconds=wall_seconds or request.max_duration_seconds)
    before = _price(snapshot, policy, timed)
    against = [
        verdict for verdict in judge_request(snapshot, policy, request, None).verdicts if not verdict.allows
    ]
    if against:
        asked = [verdict for verdict in against if is_about_asking(verdict)]
        found = [*_permitting(snapshot, policy, request, asked), *_sooner(snapshot, policy, request)]
    else:
        found = list(_cheaper(snapshot, policy, timed, before))
    return tuple(found[:_MOST])


def _permitting(
    snapshot: Snapshot, policy: Policy, request: JobRequest, against: list[Verdict]
) -> Iterator[Option]:
    """Changes to what was asked, where a rule, a class or a quota speaks against it."""
    base = _price(snapshot, policy, request)
    for change in _changes(request, against):
        judged = judge_request(snapshot, policy, change.request, None)
        if any(not verdict.allows and is_about_asking(verdict) for verdict in judged.verdicts):
            continue
        after = _price(snapshot, policy, change.request)
        starts = 0.0 if judged.place is not None else None
        yield Option(
            phase=request.phase, change=change.say, effect=_effect(base, after, starts_minutes=starts)
        )


def _changes(request: JobRequest, against: list[Verdict]) -> Iterator[_Change]:
    for verdict in against:
        if verdict.rule.startswith("duration.") and "most_seconds" in verdict.numbers:
            most = verdict.numbers["most_seconds"]
            say = f"constraints.max_duration: {_written(most)}"
            yield _Change(say, replace(request, max_duration_seconds=most))
        elif _is_of_team(verdict) and request.max_duration_seconds:
            asked, left = _asked_and_left(verdict)
            if asked > 0.0 and left > 0.0:
                seconds = float(int(request.max_duration_seconds * left / asked))
                say = f"constraints.max_duration: {_written(seconds)}, which the team has left"
                yield _Change(say, replace(request, max_duration_seconds=seconds))
        elif verdict.rule == "instance.type":
            yield _Change("resources.gpu: any that the team may use", replace(request, gpu_models=()))
        elif verdict.rule == "residency.team":
            yield _Change("constraints.residency: where the team may run", replace(request, residency=()))
    if against and not request.approved:
        yield _Change("have the run approved", replace(request, approved=True))


def _sooner(snapshot: Snapshot, policy: Policy, request: JobRequest) -> Iterator[Option]:
    """What would start a phase that may run and has to wait; tried by `explain`'s own choice."""
    if request.job not in snapshot.jobs:
        return
    for option in choose_options(snapshot, policy, snapshot.job(request.job)):
        starts = max(0.0, option.starts_at - snapshot.at) / 60.0
        effect = Effect(starts_minutes=round(starts, 2), cost_usd_delta=option.cost_delta_usd)
        yield Option(phase=request.phase, change=option.change, effect=effect)


def _cheaper(
    snapshot: Snapshot, policy: Policy, request: JobRequest, before: Usage | None
) -> Iterator[Option]:
    """Less power, another GPU or another place, where that saves money or carbon."""
    if before is None or not request.gpus or request.max_duration_seconds is None:
        return
    slower = request.max_duration_seconds / predict_speed(_CAP)
    changes = [
        _Change(
            f"cap its power at {format_share(_CAP)}: takes {format_seconds(slower)}",
            replace(request, max_duration_seconds=slower),
            _CAP,
        )
    ]
    if request.residency:
        changes.append(_Change("constraints.residency: any", replace(request, residency=())))
    if request.gpu_models:
        changes.append(_Change("resources.gpu: any, at the same speed", replace(request, gpu_models=())))
    for change in changes:
        after = _price(snapshot, policy, change.request, change.power_fraction)
        if after is None or judge_request(snapshot, policy, change.request, None).place is None:
            continue
        saves_money = before.usd - after.usd > max(_LEAST_USD, _LEAST_SHARE * before.usd)
        saves_carbon = before.kg_co2e - after.kg_co2e > max(_LEAST_KG, _LEAST_SHARE * before.kg_co2e)
        if saves_money or saves_carbon:
            yield Option(
                phase=request.phase, change=change.say, effect=_effect(before, after, starts_minutes=0.0)
            )


def _price(
    snapshot: Snapshot, policy: Policy, request: JobRequest, power_fraction: float = 1.0
) -> Usage | None:
    """What it uses at most, whatever its team has left."""
    return usage_alone(snapshot, policy, replace(request, project=""), power_fraction)


def _written(seconds: float) -> str:
    """A duration as a document has it, not longer than this."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{math.floor(100.0 * seconds / size) / 100.0:g}{unit}"
    return f"{math.floor(seconds)}s"


def is_about_asking(verdict: Verdict) -> bool:
    """Whether it is what was asked that stands in the way, not what is free now."""
    return verdict.rule.startswith(_ABOUT_ASKING) or verdict.outcome is Outcome.REFUSE


_ABOUT_ASKING = ("rule.", "quota.", "budget.", "duration.", "instance.", "residency", "queue.")


def _is_of_team(verdict: Verdict) -> bool:
    return verdict.rule.startswith(("quota.", "budget."))


def _asked_and_left(verdict: Verdict) -> tuple[float, float]:
    def named(prefix: str) -> float:
        return next((value for name, value in verdict.numbers.items() if name.startswith(prefix)), 0.0)

    return named("asked_"), named("left_")


def _effect(before: Usage | None, after: Usage | None, *, starts_minutes: float | None) -> Effect:
    if before is None or after is None:
        return Effect(starts_minutes=starts_minutes)
    return Effect(
        starts_minutes=starts_minutes,
        cost_usd_delta=round(after.usd - before.usd, 4),
        gpu_hours_delta=round(after.gpu_hours - before.gpu_hours, 4),
        carbon_kg_delta=round(after.kg_co2e - before.kg_co2e, 4),
    )
