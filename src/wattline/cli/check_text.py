"""A report as people read it in a terminal: the same words and the same order as in a comment."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from wattline.checks.rendering.wording import (
    say_accuracy,
    say_change,
    say_cost_kinds,
    say_effect,
    say_phase_start,
    say_span,
    say_standing,
    say_verdict,
    say_watts,
    why_not_estimated,
)
from wattline.checks.report import Report
from wattline.cli.printing import columns, plain

# What the table says already.
_EXPECTED = ("fits now", "comes after")
_STYLES = {
    "pass": "green",
    "allow": "green",
    "warn": "yellow",
    "wait": "yellow",
    "skip": "dim",
    "fail": "bold red",
    "refuse": "bold red",
    "block": "bold red",
}


def show_report(console: Console, report: Report) -> None:
    verdict = (say_verdict(report), _STYLES[report.verdict])
    console.print(Text.assemble(plain(report.pipeline), ": ", verdict))
    console.print("; ".join(say_change(report)), soft_wrap=True)
    if report.base is not None and report.base.say:
        console.print(plain(report.base.say), style="dim", soft_wrap=True)
    for show in (_show_checks, _show_phases, _show_policy):
        show(console, report)
    lines = list(_lines(report))
    if lines:
        console.print()
    for line in lines:
        console.print(plain(line), soft_wrap=True)
    console.print()
    console.print(plain("; ".join(say_standing(report))), style="dim", soft_wrap=True)


def _show_checks(console: Console, report: Report) -> None:
    if not report.preflight:
        return
    console.print()
    table = columns("check", "", "")
    for checked in report.preflight:
        said = f"{checked.message}; {checked.fix}" if checked.fix else checked.message
        table.add_row(
            plain(checked.title), Text(checked.outcome, style=_STYLES[checked.outcome]), plain(said)
        )
    console.print(table)


def _show_phases(console: Console, report: Report) -> None:
    if not report.phases:
        return
    console.print()
    table = columns("phase", "starts", "takes", "peak", "by")
    for phase in report.phases:
        table.add_row(
            plain(phase.phase),
            plain(say_phase_start(phase, report.at)),
            say_span(phase.wall_hours, at_most=phase.at_most),
            say_watts(phase.peak_watts),
            plain(phase.wall_from),
        )
    console.print(table)
    for phase in report.phases:
        if not phase.say.startswith(_EXPECTED):
            console.print(plain(phase.say), soft_wrap=True)


def _show_policy(console: Console, report: Report) -> None:
    heard = [said for said in report.policy if said.outcome != "allow"]
    if not heard:
        return
    console.print()
    table = columns("rule", "", "mode", "phase", "")
    for said in heard:
        told = f"{said.message}; {said.fix}" if said.fix else said.message
        outcome = Text(said.outcome, style=_STYLES[said.outcome])
        table.add_row(plain(said.rule), outcome, said.mode, plain(said.phase), plain(told))
    console.print(table)


def _lines(report: Report) -> Iterator[str]:
    """What would help, what it is made of, and what is not known."""
    for option in report.options:
        effect = say_effect(option.effect)
        yield f"{option.phase}: {option.change}" + (f": {effect}" if effect else "")
    kinds = say_cost_kinds(report.estimate.cost_usd)
    if kinds:
        yield f"cost: {kinds}"
    yield say_accuracy(report.estimate)
    if report.marginal is not None:
        yield f"what the last runs bought: {report.marginal.advice}. {report.marginal.say}".rstrip()
    for name, why in why_not_estimated(report).items():
        yield f"not estimated: {name}" + (f", {why}" if why else "")
