from __future__ import annotations

import io

from hypothesis import HealthCheck, given, settings
from rich.console import Console

from checks.rendering.hostile import REPORTS
from checks.rendering.sample import BLOCKED
from wattline.checks.report import Report
from wattline.cli.check_text import show_report


def shown(report: Report) -> str:
    out = io.StringIO()
    show_report(Console(file=out, width=100, highlight=False, markup=False, emoji=False), report)
    return out.getvalue()


def test_the_verdict_and_the_change_come_first() -> None:
    lines = shown(BLOCKED).splitlines()
    assert lines[0] == "tiny-lm: blocked by 1 check and 1 rule of the policy"
    assert lines[1].startswith(
        "+22 % GPU-hours: 41 → 50; +38 USD; +19 kg CO2e; starts in ~14 min, p90 40 min"
    )


def test_all_that_a_comment_holds_is_there() -> None:
    text = shown(BLOCKED)
    for said in (
        "data.schema corpus",
        "rule.nightly",
        "70 % power",
        "no link of `oslo`",
        "off by 8 %",
        "redesign",
    ):
        assert said in text


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(REPORTS)
def test_no_report_gives_orders_to_a_terminal(report: Report) -> None:
    text = shown(report)
    assert not set(text) & set("\x1b\x07\x08\r\u202e\x00")
