"""Wording: how is what a report holds said in a line? For every rendering that people read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from wattline.checks.figures import figure_of
from wattline.checks.report import Cost, Difference, Effect, Estimate, PhaseReport, Report, Span
from wattline.twin.wording import say_energy, say_gpu_hours, say_mass
from wattline.units import format_seconds, format_share, format_watts

UNKNOWN = "not known"
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d{1,9})?)?Z")


def say_verdict(report: Report) -> str:
    """The headline: whether it may go, and how much is in the way."""
    if report.verdict != "block":
        return "good to go" if report.verdict == "pass" else "worth a look before it is merged"
    checks = sum(checked.outcome == "fail" for checked in report.preflight)
    rules = len({said.rule for said in report.policy if said.outcome == "refuse"})
    counted = ((checks, "check", "checks"), (rules, "rule of the policy", "rules of the policy"))
    by = " and ".join(f"{count} {one if count == 1 else many}" for count, one, many in counted if count)
    return f"blocked by {by}" if by else "blocked"


def say_money(usd: float | None) -> str:
    if usd is None:
        return UNKNOWN
    return f"{usd:,.0f} USD" if abs(usd) >= 9.995 or not usd else f"{usd:,.2f} USD"


def say_hours(hours: float | None) -> str:
    return UNKNOWN if hours is None else format_seconds(3600 * hours)


def say_watts(watts: float | None) -> str:
    return UNKNOWN if watts is None else format_watts(watts)


def say_minutes(minutes: float | None) -> str:
    return UNKNOWN if minutes is None else format_seconds(60 * minutes)


# What each figure is called, and how it is written.
NAMES: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "gpu_hours": ("GPU-hours", say_gpu_hours),
    "cost_usd": ("cost", say_money),
    "carbon_kg": ("CO2e", say_mass),
    "energy_kwh": ("energy", say_energy),
    "wall_hours": ("time it runs", say_hours),
    "peak_watts": ("peak power", say_watts),
    "queue_minutes": ("wait in the queue", say_minutes),
}


def say_change(report: Report) -> list[str]:
    """What the change does, in the order that reviewers ask: hours, money, carbon, when, and what is left."""
    return [*_amounts(report), *_start(report.estimate), *_left(report.estimate)]


def _amounts(report: Report) -> Iterator[str]:
    hours = report.diff.get("gpu_hours")
    if hours is not None and hours.delta is not None:
        yield _hours_change(hours)
    elif report.estimate.gpu_hours is not None:
        most = "at most " if report.estimate.at_most else ""
        yield f"{most}{say_gpu_hours(report.estimate.gpu_hours)} GPU-hours"
    else:
        yield "GPU-hours not known"
    yield from _amount(report, "cost_usd", say_money, "")
    yield from _amount(report, "carbon_kg", say_mass, " CO2e")


def _hours_change(hours: Difference) -> str:
    base, head = say_gpu_hours(hours.base), say_gpu_hours(hours.head)
    if base == head:
        return f"GPU-hours unchanged: {head}"
    if hours.fraction is None:
        return f"{signed(hours.delta or 0.0, say_gpu_hours)} GPU-hours: {base} → {head}"
    return f"{signed(hours.fraction, format_share)} GPU-hours: {base} → {head}"


def _amount(report: Report, name: str, say: Callable[[float], str], of: str) -> Iterator[str]:
    difference = report.diff.get(name)
    if difference is not None and difference.delta is not None:
        yield signed(difference.delta, say) + of
    else:
        head = figure_of(report.estimate, name)
        if head is not None:
            yield say(head) + of


def _start(estimate: Estimate) -> Iterator[str]:
    p50, p90 = estimate.queue_minutes.p50, estimate.queue_minutes.p90
    if p50 is None:
        yield "start not known"
        return
    soon = "starts at once" if p50 < 1 / 60 else f"starts in ~{say_minutes(p50)}"
    yield soon if p90 is None or p90 - p50 < 1 / 60 else f"{soon}, p90 {say_minutes(p90)}"


def _left(estimate: Estimate) -> Iterator[str]:
    left = estimate.quota_left
    if left is None:
        return
    kinds = (
        (left.gpu_hours, left.gpu_hours_of, "GPU-hours"),
        (left.usd, left.usd_of, "USD"),
        (left.kwh, left.kwh_of, "kWh"),
        (left.kg_co2e, left.kg_co2e_of, "kg CO2e"),
    )
    told = [
        f"{say_gpu_hours(rest)} of {say_gpu_hours(whole)} {unit}"
        for rest, whole, unit in kinds
        if rest is not None and whole is not None
    ]
    if told:
        yield f"quota left {', '.join(told)}"


def signed(value: float, say: Callable[[float], str]) -> str:
    """+38 USD, −4 min; no sign where nothing of it can be seen."""
    said = say(abs(value))
    if said == say(0.0):
        return f"±{said}"
    return f"{'+' if value > 0 else '−'}{said}"


def say_difference(difference: Difference, say: Callable[[float | None], str]) -> str:
    if difference.delta is None:
        return ""
    share = f" ({signed(difference.fraction, format_share)})" if difference.fraction else ""
    return signed(difference.delta, say) + share


def say_effect(effect: Effect) -> str:
    """What an option brings: sooner first, then cheaper."""
    told = []
    if effect.starts_minutes is not None:
        at_once = effect.starts_minutes < 1 / 60
        told.append("starts at once" if at_once else f"starts in ~{say_minutes(effect.starts_minutes)}")
    for delta, say, of in (
        (effect.cost_usd_delta, say_money, ""),
        (effect.gpu_hours_delta, say_gpu_hours, " GPU-hours"),
        (effect.carbon_kg_delta, say_mass, " CO2e"),
    ):
        if delta is not None:
            told.append(signed(delta, say) + of)
    return ", ".join(told)


def say_span(span: Span, *, at_most: bool = False) -> str:
    if span.p50 is None:
        return UNKNOWN
    if at_most and span.p50 == span.p90:
        return f"at most {say_hours(span.p50)}"
    return say_hours(span.p50) + ("" if span.p90 is None else f", p90 {say_hours(span.p90)}")


def say_cost_kinds(cost: Cost) -> str:
    """What a cost is made of; kinds that are not known are left to `not_estimated`."""
    kinds = (
        ("compute", cost.compute),
        ("energy", cost.energy),
        ("transfer", cost.transfer),
        ("checkpoints", cost.storage),
    )
    return ", ".join(f"{name} {say_money(usd)}" for name, usd in kinds if usd is not None)


def say_accuracy(estimate: Estimate) -> str:
    """How good estimates of this pipeline have been lately."""
    confidence = estimate.confidence
    if confidence is None or not confidence.runs:
        return "No run of this pipeline has been held against its estimate yet."
    runs = "1 run" if confidence.runs == 1 else f"the last {confidence.runs} runs"
    told = []
    if confidence.cost_mape is not None:
        told.append(f"cost was off by {format_share(confidence.cost_mape)} on average")
    if confidence.covered is not None:
        told.append(f"{format_share(confidence.covered)} took no longer than their p90")
    return f"Of {runs}: {'; '.join(told)}." if told else f"{runs.capitalize()} recorded."


def say_phase_start(phase: PhaseReport, at: str) -> str:
    """From the time of the report: now; in 14 min, p90 40 min."""
    soon = _seconds_between(at, phase.starts_p50)
    late = _seconds_between(at, phase.starts_p90)
    if soon is None:
        return UNKNOWN
    said = "now" if soon < 1.0 else f"in {format_seconds(soon)}"
    return said if late is None or late - soon < 1.0 else f"{said}, p90 {format_seconds(late)}"


def _seconds_between(one: str, other: str | None) -> float | None:
    """None where one of them is no moment."""
    if other is None or not _MOMENT.fullmatch(one) or not _MOMENT.fullmatch(other):
        return None
    try:
        return (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds()
    except ValueError:  # such as the 31st of February
        return None


def say_moment(at: str) -> str:
    """To the minute: 2026-12-01 08:00Z. What is no moment stays as it is."""
    found = _MOMENT.fullmatch(at)
    return f"{found[1]} {found[2]}Z" if found else at


def why_not_estimated(report: Report) -> dict[str, str]:
    """By name, with the reason where one was given."""
    reasons = dict(report.estimate.not_estimated)
    return reasons | {name: "" for name in report.not_estimated if name not in reasons}


def say_standing(report: Report) -> list[str]:
    """What a report was made of: against what, under which policy, from which commit."""
    told = [f"against {report.against}" + (" (emulated)" if report.emulated else "")]
    told.append(f"policy {report.policy_name}")
    if report.commit is not None:
        changes = " and changes in no commit" if report.dirty else ""
        told.append(f"commit {report.commit[:10]}{changes}")
    elif report.dirty:
        told.append("changes in no commit")
    if report.base is not None:
        at = f" at {report.base.commit[:10]}" if report.base.commit else ""
        told.append(f"base {report.base.name}{at}")
    told.append(say_moment(report.at))
    return told
