from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import HealthCheck, given, settings

from checks.rendering.hostile import REPORTS
from checks.rendering.sample import BLOCKED
from wattline.checks.rendering import render_junit
from wattline.checks.report import Report


def test_every_check_and_rule_is_one_test() -> None:
    (suite,) = ET.fromstring(render_junit(BLOCKED))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("9", "2", "1")
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == ["data.schema corpus", "policy.rule.nightly train"]
    failure = suite.find(".//failure")
    assert failure is not None
    assert (failure.text or "").startswith("examples/tiny-lm/data/corpus.csv:1204\ncolumn score")


def test_figures_go_along_as_properties() -> None:
    (suite,) = ET.fromstring(render_junit(BLOCKED))
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert properties["verdict"] == "block"
    assert properties["gpu_hours"] == "50"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(REPORTS)
def test_any_report_is_xml_with_counts_that_are_right(report: Report) -> None:
    (suite,) = ET.fromstring(render_junit(report))
    assert int(suite.get("tests", "")) == len(list(suite.iter("testcase")))
    assert int(suite.get("failures", "")) == len(list(suite.iter("failure")))
    assert int(suite.get("skipped", "")) == len(list(suite.iter("skipped")))
