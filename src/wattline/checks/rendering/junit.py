"""JUnit: one test for every check and rule. Valid XML whatever the messages hold."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from wattline.checks.figures import FIGURES, figure_of
from wattline.checks.rendering.escaping import one_line, visible
from wattline.checks.rendering.findings import Finding, findings_of
from wattline.checks.report import Report

_LONGEST_MESSAGE = 4000


def render_junit(report: Report) -> str:
    found = findings_of(report)
    failures = sum(each.level == "error" for each in found)
    skipped = sum(each.skipped for each in found)
    counts = {"tests": str(len(found)), "failures": str(failures), "errors": "0", "skipped": str(skipped)}
    root = ET.Element("testsuites", {"name": "wattline", **counts, "time": "0"})
    suite = ET.SubElement(
        root,
        "testsuite",
        {
            "name": f"wattline check {one_line(report.pipeline, 200)}",
            **counts,
            "time": "0",
            "timestamp": one_line(report.at, 60).removesuffix("Z"),
        },
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(report).items():
        ET.SubElement(properties, "property", {"name": name, "value": value})
    for finding in found:
        _add(suite, finding)
    ET.indent(root)
    # Named as ASCII, every other letter becomes a reference: no reader has to guess the encoding.
    text: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return text.decode("ascii") + "\n"


def _properties(report: Report) -> dict[str, str]:
    figures = {name: figure_of(report.estimate, name) for name in FIGURES}
    known = {name: f"{value:g}" for name, value in figures.items() if value is not None}
    return {"verdict": report.verdict, **known}


def _add(suite: ET.Element, finding: Finding) -> None:
    kind = "policy" if finding.rule.startswith("policy.") else "preflight"
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": f"wattline.{kind}",
            "name": one_line(finding.title, 300),
            "file": one_line(finding.file, 1000),
            "time": "0",
        },
    )
    text = visible(finding.text[:_LONGEST_MESSAGE])
    if finding.level == "error":
        failure = {"message": one_line(finding.message, 500), "type": one_line(finding.rule, 200)}
        ET.SubElement(case, "failure", failure).text = f"{visible(finding.file)}:{finding.line}\n{text}"
    elif finding.skipped:
        ET.SubElement(case, "skipped", {"message": one_line(finding.message, 500)})
    else:
        ET.SubElement(case, "system-out").text = text
