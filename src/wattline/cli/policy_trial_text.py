"""A policy on trial as people read it: what speaks against it first, then the figures."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from wattline.cli.policy_trial import History, Played, Tried, say_jobs
from wattline.cli.printing import columns, plain
from wattline.control import RuleTrial
from wattline.plane.moments import clock
from wattline.spec import Policy
from wattline.twin.wording import say_added, say_count, say_gpu_hours

_SHOWN = ("started", "refused", "waiting", "capped", "shrunk", "paused", "resumed", "moved", "stopped")


def show_tried(console: Console, tried: Tried) -> None:
    for complaint in tried.complaints:
        console.print(plain(f"✗ {complaint}"), style="bold red")
    for warning in tried.warnings:
        console.print(plain(f"! {warning}"), style="yellow")
    if tried.complaints or tried.warnings:
        console.print()
    if tried.history is None:
        console.print("nothing was recorded here: only scenarios are tried", style="yellow")
    else:
        _show_history(console, tried.policy, tried.history)
    if tried.played:
        _show_scenarios(console, tried.played)
    if tried.rules:
        _show_rules(console, tried.rules)
    if not tried.complaints:
        console.print()
        console.print(plain(f"✓ policy {tried.policy.policy} passes"), style="green")


def _show_history(console: Console, policy: Policy, history: History) -> None:
    decisions = f"{say_jobs(len(history.would.jobs))}, {say_count(history.would.decisions)} decisions"
    span = f"from {clock(history.since)} to {clock(history.until)}"
    console.print(f"what was recorded: {decisions} {span}", style="bold")
    table = columns("jobs", "as it was", plain(policy.policy), last_ratio=False)
    was, would = history.recorded.counts, history.would.counts
    for deed in _SHOWN:
        if was[deed] or would[deed]:
            table.add_row(deed, say_count(was[deed]), say_count(would[deed]))
    console.print(table)
    for rule, count in history.would.refused_by.most_common():
        console.print(plain(f"refused by {rule}: {say_jobs(count)}"))


def _show_scenarios(console: Console, played: Sequence[Played]) -> None:
    deeds = ("started", "refused", "capped", "paused")
    names = ("scenario", "jobs", *deeds, "useful GPU-hours", "caps violated")
    table = columns(*names, last_ratio=False)
    for each in played:
        counts, report = each.trial.counts, each.report
        table.add_row(
            plain(each.scenario),
            say_count(report.jobs.submitted),
            *(say_count(counts[deed]) for deed in deeds),
            say_gpu_hours(report.useful_gpu_hours),
            say_added(report.cap_violation_seconds),
        )
    console.print()
    console.print(table)


def _show_rules(console: Console, rules: Sequence[RuleTrial]) -> None:
    table = columns("rule", "mode", "holds for", "cannot be evaluated for", last_ratio=False)
    for rule in rules:
        table.add_row(rule.rule, rule.mode.value, say_jobs(rule.holds), say_jobs(rule.failed))
    console.print()
    console.print(table)
