from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from checks.rendering.hostile import REPORTS
from checks.rendering.page import Page
from checks.rendering.sample import BLOCKED, HOSTILE, PASSED, difference
from wattline.checks.rendering import LONGEST_COMMENT, render_markdown, render_quiet
from wattline.checks.rendering.escaping import marker, units
from wattline.checks.report import Base, Check, Estimate, Report

_OURS = {"h3", "code", "p", "strong", "ul", "li", "details", "summary", "sub"}
_TABLE = {"table", "thead", "tbody", "tr", "th", "td"}


def lines(report: Report) -> list[str]:
    return [line for line in Page(render_markdown(report)).text.splitlines() if line.strip()]


def test_the_verdict_comes_first_and_the_change_in_one_line_after_it() -> None:
    first, second = lines(BLOCKED)[:2]
    assert first == "⛔ tiny-lm: blocked by 1 check and 1 rule of the policy"
    assert second.replace("\u200b", "") == (
        "+22 % GPU-hours: 41 → 50 · +38 USD · +19 kg CO2e · starts in ~14 min, p90 40 min · "
        "quota left 312 of 500 GPU-hours"
    )


def test_what_is_in_the_way_comes_with_its_fix_before_any_fold() -> None:
    opening = render_markdown(BLOCKED).partition("<details>")[0]
    for said in (
        "data.schema corpus",
        "wattline data pin",
        "submit after 20:00",
        "starts at once",
        "has a price",
    ):
        assert said in opening
    assert "train.py is there" not in opening


def test_a_reason_that_a_check_gave_is_not_told_twice() -> None:
    opening = render_markdown(BLOCKED).partition("<details>")[0]
    assert opening.count("3.1 % nulls") == 1
    other = msgspec.structs.replace(BLOCKED, reasons=("nobody approved it",))
    assert "- nobody approved it" in render_markdown(other)


def test_a_change_that_passes_has_no_list_before_the_folds() -> None:
    assert lines(PASSED)[0] == "✅ tiny-lm: good to go"
    assert "\n- " not in render_markdown(PASSED).partition("<details>")[0]


def test_without_a_base_figures_stand_alone() -> None:
    alone = msgspec.structs.replace(BLOCKED, base=None, diff={})
    assert lines(alone)[1].startswith("50 GPU-hours · 206 USD · 30.8 kg CO2e")
    assert "base" not in render_markdown(alone).partition("</details>")[0]


def test_a_pipeline_that_is_added_is_told_from_zero() -> None:
    added = msgspec.structs.replace(
        BLOCKED,
        diff={"gpu_hours": difference(0.0, 50.0)},
        base=Base(name="main", say="main has no a.yaml: it is added"),
    )
    told = lines(added)
    assert told[1].startswith("+50 GPU-hours: 0 → 50")
    assert told[2] == "Base: main has no a.yaml: it is added"


def test_figures_that_stay_are_said_to_stay() -> None:
    same = msgspec.structs.replace(
        BLOCKED, diff={"gpu_hours": difference(50.0, 50.0), "cost_usd": difference(7.0, 7.0)}
    )
    assert lines(same)[1].startswith("GPU-hours unchanged: 50 · ±0 USD")


def test_what_is_not_known_is_never_a_zero() -> None:
    empty = msgspec.structs.replace(
        BLOCKED, estimate=Estimate(not_estimated={"gpu_hours": "no run"}), diff={}
    )
    assert lines(empty)[1] == "GPU-hours not known · start not known"
    assert "gpu&#95;hours</code>: no run" in render_markdown(empty)


def test_a_dirty_work_tree_is_told() -> None:
    dirty = msgspec.structs.replace(BLOCKED, dirty=True)
    assert "commit 4f2c9d1a8b and changes in no commit" in render_markdown(dirty)


def test_a_report_too_long_for_a_comment_loses_whole_folds_and_says_which() -> None:
    many = tuple(Check(check=f"c{at}", outcome="warn", message="x" * 600) for at in range(100))
    text = render_markdown(msgspec.structs.replace(BLOCKED, preflight=many), longest=20_000)
    assert units(text) <= 20_000
    assert text.count("<details>") == text.count("</details>") >= 2
    assert "Left out, for a comment has its limit: Checks: 100 to look at." in text


def test_a_long_table_says_how_much_more_there_is() -> None:
    many = tuple(Check(check=f"c{at}", outcome="pass", message="ok") for at in range(130))
    assert "… and 30 more" in render_markdown(msgspec.structs.replace(BLOCKED, preflight=many))


def test_an_outdated_comment_becomes_a_word_under_the_same_marker() -> None:
    text = render_quiet(PASSED)
    assert text.startswith(marker(PASSED.file))
    assert "nothing worth a comment any more" in text
    assert "<details>" not in text


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(REPORTS)
def test_any_report_is_a_page_of_the_tags_that_are_meant(report: Report) -> None:
    text = render_markdown(report)
    page = Page(text)
    assert units(text) <= LONGEST_COMMENT
    assert set(page.tags) <= _OURS | _TABLE
    assert not page.unbalanced
    assert not page.open
    assert {name for name, _ in page.attributes} <= {"style"}
    assert page.comments == [marker(report.file).removeprefix("<!--").removesuffix("-->")]
    assert not re.search(r"@\w|\w://|www\.", page.text)
    assert not [line for line in text.splitlines() if line.startswith("/")]  # an order to GitLab


@pytest.mark.parametrize("report", [HOSTILE, msgspec.structs.replace(HOSTILE, pipeline="")])
def test_names_that_mean_harm_are_text(report: Report) -> None:
    page = Page(render_markdown(report))
    assert "img" not in page.tags
    assert "a" not in page.tags
    assert "<img src=x onerror=alert(1)>" in page.text


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(REPORTS)
def test_the_longest_head_leaves_room_for_itself(report: Report) -> None:
    assert units(render_markdown(msgspec.structs.replace(report, phases=()), longest=30_000)) <= 30_000
