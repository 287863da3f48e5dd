"""Markdown: what does a reviewer read in ten seconds, and where is the rest?

The verdict first, then the change in one line, what is in the way, what policy says, what would help, and
what is not known. All else is folded. A folded part is there whole or not at all: a comment has a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wattline.checks.rendering.escaping import code, markdown, marker, sentence, units
from wattline.checks.rendering.findings import level_of
from wattline.checks.rendering.folded import (
    fold_checks,
    fold_figures,
    fold_marginal,
    fold_phases,
    fold_policy,
)
from wattline.checks.rendering.wording import (
    say_change,
    say_effect,
    say_moment,
    say_standing,
    say_verdict,
    why_not_estimated,
)
from wattline.checks.report import Report

LONGEST_COMMENT = 65_536  # what GitHub takes, in characters
_SIGNS = {"pass": "✅", "warn": "⚠️", "block": "⛔"}
_MARKS = {"fail": "❌", "warn": "⚠️", "refuse": "⛔", "wait": "⏳"}
_MOST_LINES = 5  # of each kind before the fold
_NOTE_ROOM = 600


@dataclass(frozen=True, slots=True)
class Section:
    """A part that is folded: what its line says, and what is under it."""

    title: str
    body: str

    def __str__(self) -> str:
        return f"<details><summary>{self.title}</summary>\n\n{self.body}\n\n</details>"


_FOLDS: tuple[Callable[[Report], tuple[str, str] | None], ...] = (
    fold_figures,
    fold_checks,
    fold_phases,
    fold_policy,
    fold_marginal,
)


def render_markdown(report: Report, *, longest: int = LONGEST_COMMENT) -> str:
    """A comment on a pull request, or the summary of a step."""
    head = "\n\n".join([marker(report.file), _headline(report), *_opening(report)])
    foot = f"<sub>{markdown(' · '.join(say_standing(report)), 600)}</sub>"
    sections = [Section(*folded) for fold in _FOLDS if (folded := fold(report)) is not None]
    return _fit(head, sections, foot, longest)


def render_quiet(report: Report) -> str:
    """What an earlier comment becomes once there is nothing left that the team wants to hear of."""
    headline = f"### ✅ {code(report.pipeline, 100)}: nothing worth a comment any more"
    bound = f"less than policy {code(report.policy_name, 100)} asks to hear of"
    foot = f"<sub>{bound} · {markdown(say_moment(report.at), 60)}</sub>"
    return "\n\n".join([marker(report.file), headline, _change(report), foot]) + "\n"


def _fit(head: str, sections: list[Section], foot: str, longest: int) -> str:
    room = longest - units(head) - units(foot) - _NOTE_ROOM
    kept, left_out = [], []
    for section in sections:
        room -= units(str(section)) + 2
        if room >= 0:
            kept.append(str(section))
        else:
            room += units(str(section)) + 2
            left_out.append(section.title)
    note = f"Left out, for a comment has its limit: {'; '.join(left_out)}. The report's JSON has all of it."
    return "\n\n".join([head, *kept, *([note] if left_out else []), foot]) + "\n"


def _headline(report: Report) -> str:
    return f"### {_SIGNS[report.verdict]} {code(report.pipeline, 100)}: {say_verdict(report)}"


def _change(report: Report) -> str:
    first, *rest = [markdown(part, 200) for part in say_change(report)]
    return " · ".join([f"**{first}**", *rest])


def _opening(report: Report) -> Iterator[str]:
    yield _change(report)
    if report.base is not None and report.base.say:
        yield f"Base: {sentence(report.base.say, 400)}"
    for title, lines in (
        ("In the way" if report.verdict == "block" else "To look at", _in_the_way(report)),
        ("Policy", _policy(report)),
        ("Cheaper or sooner", _options(report)),
        ("Not estimated", _unknown(report)),
    ):
        if lines:
            yield _list(title, lines)


def _list(title: str, lines: list[str]) -> str:
    shown = [f"- {line}" for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        shown.append(f"- … and {len(lines) - _MOST_LINES} more")
    return "\n".join([f"**{title}**", "", *shown])


def _in_the_way(report: Report) -> list[str]:
    """Checks that found something, the worst first; then reasons that no check or rule has given."""
    found = [checked for checked in report.preflight if checked.outcome in {"fail", "warn"}]
    found.sort(key=lambda checked: checked.outcome != "fail")
    said = [checked.message for checked in found] + [each.message for each in report.policy]
    others = [
        reason for reason in report.reasons if not any(message and message in reason for message in said)
    ]
    return [
        f"{_MARKS[checked.outcome]} {code(checked.title, 150)}: {_told(checked.message, checked.fix)}"
        for checked in found
    ] + [sentence(reason, 500) for reason in others]


def _policy(report: Report) -> list[str]:
    heard = [said for said in report.policy if said.outcome != "allow"]
    heard.sort(key=lambda said: ("error", "warning", "note", "none").index(level_of(said)))
    return [
        f"{_MARKS[said.outcome]} {code(said.rule, 150)} ({said.mode}, {code(said.phase, 100)}): "
        + _told(said.message, said.fix)
        for said in heard
    ]


def _told(message: str, fix: str) -> str:
    return sentence(message, 500) + (f" → {sentence(fix, 400)}" if fix else "")


def _options(report: Report) -> list[str]:
    lines = []
    for option in report.options:
        effect = say_effect(option.effect)
        brings = f" → **{markdown(effect, 200)}**" if effect else ""
        lines.append(f"{code(option.phase, 100)}: {sentence(option.change, 300)}{brings}")
    return lines


def _unknown(report: Report) -> list[str]:
    return [
        code(name, 100) + (f": {sentence(why, 300)}" if why else "")
        for name, why in why_not_estimated(report).items()
    ]
