from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import Wattline, Writing
from wattline.state import Asked, AttemptStarted


def test_a_run_is_listed_with_how_it_stands(ran: str, wattline: Wattline) -> None:
    listed = wattline("status")
    assert listed.code == 0
    (line,) = [line for line in listed.out.splitlines() if line.startswith(ran)]
    assert "awaiting approval" in line
    assert "2/2 phases" in line


@pytest.mark.parametrize("columns", ["80", "120"])
def test_no_line_is_wider_than_the_terminal(
    columns: str, ran: str, wattline: Wattline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for arguments in (["status"], ["status", ran], ["explain"], ["lineage", ran], ["facility", "show"]):
        shown = wattline(*arguments)
        assert max(map(len, shown.out.splitlines())) <= int(columns), arguments


def test_one_run_shows_its_phases_attempts_and_gates(ran: str, wattline: Wattline) -> None:
    shown = wattline("status", ran)
    assert shown.code == 0
    assert "prepare" in shown.out
    assert "train" in shown.out
    assert "final_loss <= 0.2" in shown.out


def test_json_has_the_same_facts(ran: str, wattline: Wattline) -> None:
    listed = wattline("status", "--output", "json").json
    assert listed["writer"] is None
    assert [run["run_id"] for run in listed["runs"]] == [ran]
    one = wattline("status", ran, "--output", "json").json
    assert one["state"] == "awaiting approval"
    assert [phase["phase"] for phase in one["phases"]] == ["prepare", "train"]
    (attempt,) = one["phases"][1]["attempts"]
    assert attempt["ending"] == "succeeded"


def test_an_unknown_run_gets_the_nearest_name(ran: str, wattline: Wattline) -> None:
    shown = wattline("status", ran[:-1] + "x")
    assert shown.code == 2
    assert f"did you mean {ran}?" in shown.err


def test_where_nothing_ever_ran_nothing_is_made(home: Path, wattline: Wattline) -> None:
    listed = wattline("status")
    assert listed.code == 0
    assert "no run" in listed.out
    assert wattline("status", "some-run").code == 3
    assert not home.exists()


def test_what_waits_says_for_what_in_a_few_words(writing: Writing, wattline: Wattline) -> None:
    writing.submit("first")
    writing.submit("second")
    writing.submit("third")
    writing.decide()
    listed = wattline("status", "--output", "json").json
    assert [run["run_id"] for run in listed["runs"]] == ["third", "second", "first"], "newest first"
    states = {run["run_id"]: run["state"] for run in listed["runs"]}
    assert states == {"first": "starting", "second": "starting", "third": "waiting"}
    assert "short" in listed["runs"][0]["waiting_for"]
    assert "conducted by" in wattline("status").out


def test_a_run_that_nobody_conducts_any_more_is_interrupted(writing: Writing, wattline: Wattline) -> None:
    writing.submit("first")
    writing.decide()
    writing.step(AttemptStarted(at=writing.now, job="first/train", attempt=1))
    assert "running" in wattline("status").out
    writing.session.close()
    listed = wattline("status")
    assert "interrupted" in listed.out
    assert "--resume" in listed.out


def test_a_run_that_somebody_paused_says_so(writing: Writing, wattline: Wattline) -> None:
    writing.submit("first")
    writing.step(Asked(at=writing.now, job="first/train", want="pause"))
    assert "paused: asked to pause" in wattline("status").out
