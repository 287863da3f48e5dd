"""Folded: what stands under each fold of a comment? Tables, with as many rows as somebody would read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from wattline.checks.figures import FIGURES, figure_of
from wattline.checks.rendering.escaping import code, markdown, sentence
from wattline.checks.rendering.wording import (
    NAMES,
    say_accuracy,
    say_cost_kinds,
    say_difference,
    say_money,
    say_phase_start,
    say_span,
    say_watts,
)
from wattline.checks.report import Report
from wattline.twin.wording import say_gpu_hours

_MOST_ROWS = 100
_ORDER = ("fail", "warn", "skip", "pass")
_OUTCOMES = {"fail": "❌ failed", "warn": "⚠️ look", "skip": "➖ skipped", "pass": "✅ passed"}
_COUNTED = {"fail": "failed", "warn": "to look at", "skip": "skipped", "pass": "passed"}
_SAID = {"refuse": "⛔ refuse", "warn": "⚠️ warn", "wait": "⏳ wait", "allow": "✅ allow"}

Fold = tuple[str, str]


def fold_figures(report: Report) -> Fold:
    """Every figure, against the base where there is one."""
    rows: list[tuple[str, ...]] = []
    for name in FIGURES:
        title, say = NAMES[name]
        head, difference = say(figure_of(report.estimate, name)), report.diff.get(name)
        if not report.diff:
            rows.append((title, head))
        elif difference is None:
            rows.append((title, "", head, ""))
        else:
            rows.append((title, say(difference.base), head, say_difference(difference, say)))
    header = ("", "base", "this change", "difference") if report.diff else ("", "this change")
    spans = f"Runs for {say_span(report.estimate.wall)}." if report.estimate.wall.p50 is not None else ""
    kinds = say_cost_kinds(report.estimate.cost_usd)
    lines = [spans, f"Cost: {kinds}." if kinds else "", say_accuracy(report.estimate)]
    told = " ".join(markdown(line, 300) for line in lines if line)
    table = _table(header, [tuple(map(_cell, row)) for row in rows], "lrrr"[: len(header)])
    return "Figures", f"{table}\n\n{told}"


def fold_checks(report: Report) -> Fold | None:
    if not report.preflight:
        return None
    counts: Counter[str] = Counter(checked.outcome for checked in report.preflight)
    title = ", ".join(f"{counts[outcome]} {_COUNTED[outcome]}" for outcome in _ORDER if counts[outcome])
    rows = [
        (
            _OUTCOMES[checked.outcome],
            code(checked.title, 150),
            sentence(f"{checked.message}; {checked.fix}" if checked.fix else checked.message, 600),
        )
        for checked in sorted(report.preflight, key=lambda checked: _ORDER.index(checked.outcome))
    ]
    return f"Checks: {title}", _table(("", "check", "found"), rows)


def fold_phases(report: Report) -> Fold | None:
    if not report.phases:
        return None
    rows = [
        (
            code(phase.phase, 100),
            _cell(say_phase_start(phase, report.at)),
            _cell(say_span(phase.wall_hours, at_most=phase.at_most)),
            _cell(say_gpu_hours(phase.gpu_hours)),
            _cell(say_money(phase.cost_usd)),
            _cell(say_watts(phase.peak_watts)),
            sentence(f"{phase.say} ({phase.wall_from})" if phase.wall_from else phase.say, 300),
        )
        for phase in report.phases
    ]
    header = ("phase", "starts", "takes", "GPU-hours", "cost", "peak", "")
    return f"Phases: {len(report.phases)}", _table(header, rows, "lllrrrl")


def fold_policy(report: Report) -> Fold | None:
    if not report.policy:
        return None
    rows = [
        (
            _SAID[said.outcome],
            code(said.rule, 150),
            said.mode,
            code(said.phase, 100),
            sentence(said.message, 400),
        )
        for said in report.policy
    ]
    rules = "1 rule" if len(rows) == 1 else f"{len(rows)} rules"
    title = f"What policy {code(report.policy_name, 100)} said: {rules}"
    return title, _table(("", "rule", "mode", "phase", "said"), rows)


def fold_marginal(report: Report) -> Fold | None:
    marginal = report.marginal
    if marginal is None:
        return None
    per = ""
    if marginal.usd_per_improvement is not None:
        per = (
            f" {say_money(marginal.usd_per_improvement)} for each hundredth of {code(marginal.metric, 100)}."
        )
    body = f"Over {marginal.runs} runs:{per} {sentence(marginal.say, 500)}".rstrip()
    return f"What the last runs bought: {marginal.advice}", body


def _cell(text: str) -> str:
    return markdown(text, 200)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]], sides: str = "") -> str:
    rules = {"l": ":--", "r": "--:"}
    ruler = [rules[side] for side in sides or "l" * len(header)]
    every = list(rows)
    lines = [f"| {' | '.join(row)} |" for row in (header, tuple(ruler), *every[:_MOST_ROWS])]
    if len(every) > _MOST_ROWS:
        lines.append(f"\n… and {len(every) - _MOST_ROWS} more, in the report's JSON.")
    return "\n".join(lines)
