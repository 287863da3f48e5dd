from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks.posting.playing import TOKEN, World, playing
from checks.rendering.sample import BLOCKED
from wattline.checks.reading import encode_report
from wattline.cli.command_comment import comment_report
from wattline.errors import UsageError, WattlineError

SHA = "4f2c9d1a8b7e6f5d4c3b2a190807060504030201"


@pytest.fixture
def world() -> Iterator[World]:
    with playing() as world:
        yield world


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_bytes(encode_report(BLOCKED))
    return path


def comment(
    report: Path,
    environment: dict[str, str],
    *,
    repository: str | None = "acme/models",
    pull_request: int | None = None,
    head: str | None = None,
    commit: str | None = None,
    merge_request: int | None = None,
) -> int:
    return comment_report(
        report,
        repository=repository,
        pull_request=pull_request,
        head=head,
        commit=commit,
        project=None,
        merge_request=merge_request,
        as_json=True,
        environment=environment,
    )


def on_github(world: World) -> dict[str, str]:
    return {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": world.url}


def test_a_pull_request_is_commented_on(
    world: World, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert comment(report, on_github(world), pull_request=7) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["outcome"] == "created"
    assert TOKEN not in printed.out + printed.err
    assert world.comments[0]["body"].startswith("<!-- wattline:check:")


def test_the_pull_request_of_a_fork_is_looked_up(world: World, report: Path) -> None:
    world.pulls = [{"number": 12, "head": {"sha": SHA}}]
    assert comment(report, on_github(world), head="eve:branch", commit=SHA) == 0
    assert any(asked.startswith("POST /repos/acme/models/issues/12/comments") for asked in world.asked)


def test_a_commit_that_is_outdated_is_not_commented_on(
    world: World, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert comment(report, on_github(world), head="eve:branch", commit=SHA) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "outdated"
    assert world.comments == []


def test_a_merge_request_is_commented_on(world: World, report: Path) -> None:
    world.user = "bot"
    environment = {"GITLAB_TOKEN": TOKEN, "CI_API_V4_URL": world.url, "CI_PROJECT_ID": "42"}
    assert comment(report, environment, merge_request=3) == 0
    assert any(asked.startswith("POST /projects/42/merge_requests/3/notes") for asked in world.asked)


def test_a_report_that_is_none_is_never_posted(world: World, report: Path) -> None:
    report.write_text("{}")
    with pytest.raises(WattlineError, match="no report"):
        comment(report, on_github(world), pull_request=7)
    assert world.asked == []


@pytest.mark.parametrize(
    ("environment", "more", "said"),
    [
        ({}, {"pull_request": 1}, "GITHUB_TOKEN is not set"),
        ({"GITHUB_TOKEN": TOKEN}, {}, "which pull request"),
        ({"GITHUB_TOKEN": TOKEN}, {"pull_request": 1, "merge_request": 1}, "give one"),
        ({}, {"merge_request": 1}, "which project"),
    ],
)
def test_what_is_missing_is_asked_for(
    report: Path, environment: dict[str, str], more: dict[str, int], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        comment(
            report,
            environment,
            pull_request=more.get("pull_request"),
            merge_request=more.get("merge_request"),
        )
