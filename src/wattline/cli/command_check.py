"""The check command: would this pipeline run here, when would it start, and what would it use?"""

from __future__ import annotations

import os
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from wattline.checks import Asking, Preflight, preflight
from wattline.checks.outlook import Outlook, PhaseOutlook, look_at_run, said_by_policy
from wattline.cli.finding import open_if_any
from wattline.cli.printing import columns, iso, plain, print_json, stdout_console
from wattline.release import list_source
from wattline.spec import Pipeline, Policy, read_facility, read_pipeline, read_policy
from wattline.state import State
from wattline.units import format_seconds, format_watts

_STYLES = {"skip": "dim", "pass": "green", "warn": "yellow", "fail": "bold red", "block": "bold red"}
_EXIT_CODES = {"pass": 0, "warn": 0, "block": 1}


def check_pipeline(
    path: Path, *, facility: str | None, policy: str | None, approved: bool, as_json: bool
) -> int:
    """Nothing is written, and no lease is needed."""
    pipeline = read_pipeline(path)
    folder = path.resolve().parent
    with open_if_any() as view:
        against = "the queue here"
        if facility is None and view is not None:
            state, at = view.state, view.at
            chosen = read_policy(policy) if policy is not None else view.session.policy()
        else:
            state, at = State(read_facility(facility or "lab")), time.time()
            chosen = read_policy(policy or "default")
            against = f"{state.plant.facility.name}, empty"
        checked = preflight(
            Asking(
                pipeline=pipeline,
                policy=chosen,
                folder=folder,
                document=path.name,
                source=list_source(folder),
                sites=state.plant.sites,
                environment=os.environ,
                approved=approved,
            )
        )
        outlook = look_at_run(state, chosen, pipeline, checked, at, approved=approved)
    if as_json:
        print_json(_describe(pipeline, checked, outlook, chosen, against))
    else:
        _show(stdout_console(), pipeline, checked, outlook, against)
    return _EXIT_CODES[outlook.verdict]


def _describe(
    pipeline: Pipeline, checked: Preflight, outlook: Outlook, policy: Policy, against: str
) -> dict[str, object]:
    usage = outlook.usage
    modes = {f"rule.{rule.name}": rule.mode for rule in policy.rules}
    return {
        "pipeline": pipeline.pipeline,
        "against": against,
        "verdict": outlook.verdict,
        "preflight": checked.checks,
        "estimate": {
            "gpu_hours": usage.gpu_hours if usage else None,
            "wall_hours": outlook.wall_hours,
            "energy_kwh": usage.kwh if usage else None,
            "carbon_kg": usage.kg_co2e if usage else None,
            "cost_usd": {
                "compute": None,
                "energy": None,
                "transfer": None,
                "storage": None,
                "total": usage.usd if usage else None,
            },
            "peak_watts": outlook.peak_watts,
            "queue_minutes": {"p50": outlook.queue_p50_minutes, "p90": outlook.queue_p90_minutes},
            "quota_left": None,
            "confidence": None,
        },
        "phases": [_describe_phase(phase) for phase in outlook.phases],
        "base": None,
        "diff": None,
        "policy": [
            {
                "phase": phase.phase,
                "rule": verdict.rule,
                "mode": modes.get(verdict.rule, "enforce"),
                "outcome": verdict.outcome,
                "message": verdict.sentence(),
            }
            for phase in outlook.phases
            for verdict in said_by_policy(phase.verdicts)
        ],
        "options": [
            {"phase": phase.phase, "change": option.change, "effect": option}
            for phase in outlook.phases
            for option in phase.explained.options
        ],
        "not_estimated": [*outlook.not_estimated, *_NOT_YET],
    }


# What nothing here works out yet.
_NOT_YET = (
    "cost_usd.compute",
    "cost_usd.energy",
    "cost_usd.transfer",
    "cost_usd.storage",
    "quota_left",
    "confidence",
    "base",
    "diff",
)


def _describe_phase(phase: PhaseOutlook) -> dict[str, object]:
    eta = phase.explained.eta
    return {
        "phase": phase.phase,
        "say": phase.say,
        "blocked_by": phase.explained.blocked_by,
        "eta": {"p50": iso(eta.p50), "p90": iso(eta.p90), "samples": eta.samples} if eta else None,
        "wall_seconds": phase.wall_seconds,
        "wall_from": phase.wall_from,
        "peak_watts": phase.peak_watts,
        "verdicts": phase.verdicts,
    }


def _show(console: Console, pipeline: Pipeline, checked: Preflight, outlook: Outlook, against: str) -> None:
    answer = (outlook.verdict, _STYLES[outlook.verdict])
    console.print(Text.assemble(f"{pipeline.pipeline}: ", answer, (f"  against {against}", "dim")))
    console.print()
    table = columns("check", "", "")
    for check in checked.checks:
        outcome = Text(check.outcome, style=_STYLES[check.outcome])
        said = f"{check.message}; {check.fix}" if check.fix else check.message
        table.add_row(plain(check.title), outcome, plain(said))
    console.print(table)
    console.print()
    table = columns("phase", "starts", "takes", "peak", "")
    for phase in outlook.phases:
        table.add_row(phase.phase, _starts(phase, outlook.at), _takes(phase), _peak(phase), plain(phase.say))
    console.print(table)
    console.print()
    usage = outlook.usage
    if usage is not None:
        console.print(
            f"at most {usage.gpu_hours:.2f} GPU-hours, {usage.usd:.2f} USD, {usage.kwh:.2f} kWh, "
            f"{usage.kg_co2e:.2f} kg CO2e, if its GPUs draw all they may"
        )
    else:
        hint = "no recorded run, and no constraints.max_duration, says how long every phase takes"
        console.print(f"cost and energy are not estimated: {hint}", style="dim")
    for phase in outlook.phases:
        for option in phase.explained.options:
            console.print(f"{phase.phase}: {plain(option.change)}")


def _starts(phase: PhaseOutlook, at: float) -> str:
    eta = phase.explained.eta
    if eta is None or eta.p50 is None:
        return "not known"
    soon = "now" if eta.p50 - at < 1.0 else f"in {format_seconds(eta.p50 - at)}"
    late = "" if eta.p90 is None or eta.p90 - eta.p50 < 1.0 else f", p90 {format_seconds(eta.p90 - at)}"
    return f"{soon}{late}"


def _takes(phase: PhaseOutlook) -> str:
    if phase.wall_seconds is None:
        return "not known"
    most = "at most " if phase.wall_from == "constraints.max_duration" else "about "
    return f"{most}{format_seconds(phase.wall_seconds)}"


def _peak(phase: PhaseOutlook) -> str:
    return "not known" if phase.peak_watts is None else format_watts(phase.peak_watts)
