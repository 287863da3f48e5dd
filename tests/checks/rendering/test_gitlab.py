from __future__ import annotations

import json
import re

from hypothesis import HealthCheck, given, settings

from checks.rendering.hostile import REPORTS
from checks.rendering.sample import BLOCKED
from wattline.checks.rendering import render_code_quality, render_metrics
from wattline.checks.report import Report

_LINE = re.compile(r'(?:# TYPE \w+ \w+|# EOF|\w+\{\w+="(?:[^"\\\n]|\\.)*"(?:,\w+="\w+")?\} -?[\d.e+-]+)')


def test_findings_have_a_place_a_severity_and_a_fingerprint() -> None:
    first = json.loads(render_code_quality(BLOCKED))[0]
    assert first["check_name"] == "data.schema"
    assert first["severity"] == "blocker"
    assert first["location"] == {"path": "examples/tiny-lm/data/corpus.csv", "lines": {"begin": 1204}}
    assert len(first["fingerprint"]) == 32


def test_figures_are_gauges_with_the_pipeline_as_label() -> None:
    lines = render_metrics(BLOCKED).splitlines()
    assert 'wattline_gpu_hours{pipeline="tiny-lm"} 50' in lines
    assert 'wattline_verdict{pipeline="tiny-lm",wattline_verdict="block"} 1' in lines
    assert lines[-1] == "# EOF"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(REPORTS)
def test_any_report_is_read_by_both_widgets(report: Report) -> None:
    assert all(_LINE.fullmatch(line) for line in render_metrics(report).splitlines())
    found = json.loads(render_code_quality(report))
    assert len({each["fingerprint"] for each in found}) == len(found)
    assert all(each["location"]["lines"]["begin"] >= 1 for each in found)
