"""SARIF 2.1.0: what would a code scanner show, at which line, under which rule?

What passed is no result. What could not be looked at is a notification of the run, not an alert.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from wattline import __version__
from wattline.checks.rendering.escaping import one_line, visible
from wattline.checks.rendering.findings import DOCUMENTATION, Finding, findings_of
from wattline.checks.report import Report

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_MOST_RESULTS = 5000  # what GitHub shows of a run
_LONGEST_MESSAGE = 2000
_SHORT = 100  # of the path within an automation id


def render_sarif(report: Report) -> str:
    found = findings_of(report)
    results = [each for each in found if each.level != "none" and not each.skipped][:_MOST_RESULTS]
    skipped = [each for each in found if each.skipped][:_MOST_RESULTS]
    rules = list(dict.fromkeys(each.rule for each in (*results, *skipped)))
    by_rule = {each.rule: each for each in (*skipped, *results)}
    run = {
        "tool": {
            "driver": {
                "name": "wattline",
                "semanticVersion": __version__,
                "informationUri": DOCUMENTATION,
                "rules": [_rule(by_rule[rule]) for rule in rules],
            }
        },
        # Two pipelines of one repository do not overwrite each other's alerts.
        "automationDetails": {"id": f"wattline/{_uri(report.file)[-_SHORT:]}/"},
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_notification(each, rules) for each in skipped],
            }
        ],
        "results": [_result(each, rules) for each in results],
        "properties": {"verdict": report.verdict},
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(finding: Finding) -> dict[str, Any]:
    of = "A rule of the policy" if finding.rule.startswith("policy.") else "A check before a run"
    return {
        "id": one_line(finding.rule, 200),
        "shortDescription": {"text": f"{of}: {one_line(finding.rule, 200)}"},
        "help": {"text": _text(finding.fix or f"{finding.help_uri} says what it looks at.")},
        "helpUri": finding.help_uri,
        "defaultConfiguration": {"level": finding.level},
    }


def _result(finding: Finding, rules: list[str]) -> dict[str, Any]:
    return {
        "ruleId": one_line(finding.rule, 200),
        "ruleIndex": rules.index(finding.rule),
        "level": finding.level,
        "message": {"text": _text(f"{finding.subject}: {finding.text}" if finding.subject else finding.text)},
        "locations": [_location(finding)],
        "partialFingerprints": {"wattline/v1": finding.fingerprint},
    }


def _notification(finding: Finding, rules: list[str]) -> dict[str, Any]:
    return {
        "associatedRule": {"id": one_line(finding.rule, 200), "index": rules.index(finding.rule)},
        "level": "note",
        "message": {"text": _text(f"{finding.title} was skipped: {finding.text}")},
    }


def _location(finding: Finding) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.file), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": finding.line},
        }
    }


def _uri(file: str) -> str:
    return quote(file, errors="replace")


def _text(text: str) -> str:
    shown = visible(text[:_LONGEST_MESSAGE]).strip()
    return shown or "nothing was said"
