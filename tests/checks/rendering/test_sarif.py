from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import msgspec
from hypothesis import HealthCheck, given, settings

from checks.rendering.hostile import REPORTS
from checks.rendering.sample import BLOCKED
from wattline.checks.rendering import render_sarif
from wattline.checks.report import Report


def run_of(report: Report) -> dict[str, Any]:
    log = json.loads(render_sarif(report))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def test_results_have_stable_rules_levels_and_places() -> None:
    results = run_of(BLOCKED)["results"]
    assert [(each["ruleId"], each["level"]) for each in results] == [
        ("data.schema", "error"),
        ("policy.rule.nightly", "error"),
        ("lock", "warning"),
        ("policy.rule.big", "warning"),
    ]
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "examples/tiny-lm/data/corpus.csv", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 1204}


def test_a_rule_leads_to_its_section_of_the_documentation() -> None:
    rules = {rule["id"]: rule for rule in run_of(BLOCKED)["tool"]["driver"]["rules"]}
    assert rules["data.schema"]["helpUri"].endswith("/docs/checks.md#dataschema")
    assert rules["policy.rule.nightly"]["helpUri"].endswith("/docs/checks.md#policy")


def test_what_could_not_be_looked_at_is_told_of_the_run_and_is_no_alert() -> None:
    run = run_of(BLOCKED)
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["message"]["text"] == "image was skipped: the pipeline names no image"
    assert "image" not in [each["ruleId"] for each in run["results"]]


def test_where_the_review_only_warns_nothing_is_an_error() -> None:
    results = run_of(msgspec.structs.replace(BLOCKED, verdict="warn"))["results"]
    assert {each["level"] for each in results} == {"warning"}


def test_a_fingerprint_outlives_another_line_and_another_message() -> None:
    moved = [msgspec.structs.replace(each, line=7, message="else") for each in BLOCKED.preflight]
    prints = [
        each["partialFingerprints"]
        for report in (BLOCKED, msgspec.structs.replace(BLOCKED, preflight=tuple(moved)))
        for each in run_of(report)["results"]
        if each["ruleId"] == "data.schema"
    ]
    assert prints[0] == prints[1]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(REPORTS)
def test_any_report_has_the_shape_that_the_standard_asks_for(report: Report) -> None:
    run = run_of(report)
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules} | {None}) <= len(rules) + 1
    for rule in rules:
        assert urlsplit(rule["helpUri"]).scheme == "https"
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"error", "warning", "note"}
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        uri = urlsplit(place["artifactLocation"]["uri"])
        assert not uri.scheme
        assert not uri.path.startswith(("/", ".."))
    prints = [each["partialFingerprints"]["wattline/v1"] for each in run["results"]]
    assert len(set(prints)) == len(prints)
