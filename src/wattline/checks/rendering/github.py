"""GitHub: what does a step say on the diff, in its summary, and to the steps after it?

A step shows ten annotations of a kind: the most important come first, and the summary has all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from wattline.checks.rendering.escaping import one_line, visible
from wattline.checks.rendering.findings import Finding, findings_of
from wattline.checks.rendering.markdown import render_markdown
from wattline.checks.report import Report
from wattline.errors import UnavailableError

MOST_ANNOTATIONS = 10  # of a kind, in a step
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
_LONGEST_MESSAGE = 2000
_LONGEST_SUMMARY = 300_000  # of UTF-16: at most 900 kB, where a step may write 1 MiB


def render_github(report: Report) -> str:
    """Workflow commands, for stdout."""
    found = [each for each in findings_of(report) if each.level != "none"]
    lines = []
    for level, group in groupby(found, key=lambda finding: finding.level):
        every = list(group)
        fits = len(every) <= MOST_ANNOTATIONS
        shown = every if fits else every[: MOST_ANNOTATIONS - 1]
        lines += [_annotation(each) for each in shown]
        if not fits:
            more = f"and {len(every) - len(shown)} more: the summary of this step has them"
            lines.append(f"::{_COMMANDS[level]} title=wattline::{more}")
    return "".join(f"{line}\n" for line in lines)


def render_summary(report: Report) -> str:
    return render_markdown(report, longest=_LONGEST_SUMMARY)


def render_outputs(report: Report) -> str:
    """What later steps read; empty where it is not known."""
    figures = {"cost-usd": report.estimate.cost_usd.total, "gpu-hours": report.estimate.gpu_hours}
    values = {
        "verdict": report.verdict,
        "comment": "true" if report.worth_a_comment else "false",
        **{name: "" if value is None else f"{value:.6g}" for name, value in figures.items()},
    }
    return "".join(_output(name, value) for name, value in values.items())


def write_step_files(report: Report, environment: Mapping[str, str]) -> None:
    """Append to what the runner names; elsewhere than in a step there is nothing to write."""
    for variable, text in (
        ("GITHUB_STEP_SUMMARY", render_summary(report)),
        ("GITHUB_OUTPUT", render_outputs(report)),
    ):
        if path := environment.get(variable):
            try:
                with Path(path).open("a", encoding="utf-8", errors="replace") as file:
                    file.write(text)
            except OSError as error:
                raise UnavailableError(f"{variable} {path}: {error.strerror or error}") from error


def _annotation(finding: Finding) -> str:
    place = f"file={_property(finding.file)},line={finding.line},title={_property(finding.title)}"
    return f"::{_COMMANDS[finding.level]} {place}::{_data(finding.text)}"


def _data(text: str) -> str:
    return (
        visible(text[:_LONGEST_MESSAGE], keep="\n\r\t")
        .replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
    )


def _property(text: str) -> str:
    return _data(one_line(text, 300)).replace(":", "%3A").replace(",", "%2C")


def _output(name: str, value: str) -> str:
    """A value cannot hold the line that ends it: that line is made of its hash."""
    end = f"wattline-{hashlib.sha256(value.encode()).hexdigest()}"
    return f"{name}<<{end}\n{value}\n{end}\n"
