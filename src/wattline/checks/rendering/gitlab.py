"""GitLab: what does a merge request show of a change? Figures, and findings at their lines."""

from __future__ import annotations

import json
import math

from wattline.checks.figures import FIGURES, figure_of
from wattline.checks.rendering.escaping import one_line, visible
from wattline.checks.rendering.findings import Finding, findings_of
from wattline.checks.report import Report

_SEVERITIES = {"error": "blocker", "warning": "major", "note": "info"}
_LONGEST_MESSAGE = 1000
_VERDICTS = ("pass", "warn", "block")


def render_code_quality(report: Report) -> str:
    """What was found, as the merge request's widget reads it."""
    found = [_issue(each) for each in findings_of(report) if each.level != "none"]
    return json.dumps(found, indent=2) + "\n"


def render_metrics(report: Report) -> str:
    """OpenMetrics: the widget shows each against the target branch. What is not known is left out."""
    values = {f"wattline_{name}": figure_of(report.estimate, name) for name in FIGURES}
    values["wattline_queue_minutes_p90"] = report.estimate.queue_minutes.p90
    label = f'{{pipeline="{_label(report.pipeline)}"}}'
    lines = []
    for name, value in values.items():
        if value is not None and math.isfinite(value):
            lines += [f"# TYPE {name} gauge", f"{name}{label} {value:.6g}"]
    lines += ["# TYPE wattline_verdict stateset"]
    for verdict in _VERDICTS:
        state = f'{{pipeline="{_label(report.pipeline)}",wattline_verdict="{verdict}"}}'
        lines.append(f"wattline_verdict{state} {int(report.verdict == verdict)}")
    return "\n".join([*lines, "# EOF"]) + "\n"


def _issue(finding: Finding) -> dict[str, object]:
    return {
        "description": visible(f"{finding.title}: {finding.text}"[:_LONGEST_MESSAGE]),
        "check_name": one_line(finding.rule, 200),
        "fingerprint": finding.fingerprint,
        "severity": _SEVERITIES[finding.level],
        "location": {"path": visible(finding.file), "lines": {"begin": finding.line}},
    }


def _label(text: str) -> str:
    return one_line(text, 200).replace("\\", "\\\\").replace('"', '\\"')
