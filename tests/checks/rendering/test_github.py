from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from checks.rendering.hostile import REPORTS
from checks.rendering.sample import BLOCKED, PASSED
from wattline.checks.rendering.github import (
    MOST_ANNOTATIONS,
    render_github,
    render_outputs,
    render_summary,
    write_step_files,
)
from wattline.checks.report import Check, Estimate, Report
from wattline.errors import UnavailableError

_COMMAND = re.compile(r"::(error|warning|notice) (?:file=[^:,]*,line=\d+,)?title=[^:,]*::.*")


def read_outputs(text: str) -> dict[str, str]:
    """As the runner reads $GITHUB_OUTPUT."""
    values, lines = {}, iter(text.splitlines())
    for line in lines:
        name, _, end = line.partition("<<")
        value = []
        while (each := next(lines)) != end:
            value.append(each)
        values[name] = "\n".join(value)
    return values


def test_the_most_important_comes_first_at_its_line() -> None:
    first = render_github(BLOCKED).splitlines()[0]
    assert first.startswith(
        "::error file=examples/tiny-lm/data/corpus.csv,line=1204,title=data.schema corpus::"
    )
    assert "3.1 %25 nulls" in first


def test_no_more_than_a_step_shows_and_the_rest_is_told() -> None:
    many = tuple(Check(check=f"c{at}", outcome="fail", message="m") for at in range(25))
    lines = render_github(msgspec.structs.replace(BLOCKED, preflight=many, policy=())).splitlines()
    assert len(lines) == MOST_ANNOTATIONS
    assert lines[-1] == "::error title=wattline::and 16 more: the summary of this step has them"


def test_outputs_are_read_back_and_what_is_not_known_is_empty() -> None:
    assert read_outputs(render_outputs(BLOCKED)) == {
        "verdict": "block",
        "comment": "true",
        "cost-usd": "206.5",
        "gpu-hours": "50",
    }
    quiet = msgspec.structs.replace(PASSED, estimate=Estimate(), worth_a_comment=False)
    assert read_outputs(render_outputs(quiet)) == {
        "verdict": "pass",
        "comment": "false",
        "cost-usd": "",
        "gpu-hours": "",
    }


def test_the_files_that_a_runner_names_are_added_to(tmp_path: Path) -> None:
    summary, output = tmp_path / "summary", tmp_path / "output"
    output.write_text("before=1\n")
    write_step_files(BLOCKED, {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output)})
    assert summary.read_text() == render_summary(BLOCKED)
    assert output.read_text() == "before=1\n" + render_outputs(BLOCKED)
    write_step_files(BLOCKED, {})


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="GITHUB_OUTPUT"):
        write_step_files(BLOCKED, {"GITHUB_OUTPUT": str(tmp_path)})


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(REPORTS)
def test_any_report_is_lines_that_the_runner_reads_as_meant(report: Report) -> None:
    lines = render_github(report).splitlines()
    assert all(_COMMAND.fullmatch(line) for line in lines)
    for kind in ("error", "warning", "notice"):
        assert sum(line.startswith(f"::{kind} ") for line in lines) <= MOST_ANNOTATIONS
    assert set(read_outputs(render_outputs(report))) == {"verdict", "comment", "cost-usd", "gpu-hours"}
    assert len(render_summary(report).encode(errors="replace")) <= 1 << 20
