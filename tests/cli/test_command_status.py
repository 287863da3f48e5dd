from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import Wattline, Writing
from wattline.state import Asked, AttemptStarted, JobRequest, Measured, RunSubmitted, SiteStood, Standing


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


def test_a_site_tells_what_room_it_has_in_words_and_numbers(ran: str, wattline: Wattline) -> None:
    shown = wattline("status", "--site", "zurich")
    assert shown.code == 0
    assert "GPUs free" in shown.out
    assert "emulated" in shown.out
    found = wattline("status", "--site", "zurich", "--output", "json").json
    assert found["site"] == "zurich"
    assert {room["kind"] for room in found["rooms"]} == {"feed", "loop", "rack", "link"}
    assert all(room["say"] for room in found["rooms"])


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (Standing.PRIMARY, ""),
        (Standing.LOCAL_ONLY, "nothing begins there, and nothing of it moves"),
        (Standing.REGIONAL_FALLBACK, "what may move goes on elsewhere"),
        (Standing.HELD_FOR_REVIEW, "`wattline site reviewed` ends that"),
    ],
)
def test_a_site_that_has_an_agent_tells_how_it_stands_and_what_follows(
    writing: Writing, wattline: Wattline, standing: Standing, words: str
) -> None:
    writing.step(
        SiteStood(at=writing.now, site="here", standing=standing, epoch=3, agent="a1", say="as it is")
    )
    shown = wattline("status", "--site", "here")
    assert f"stands as {standing} since" in shown.out
    assert "lease epoch 3: as it is" in shown.out
    assert words in " ".join(shown.out.split())
    found = wattline("status", "--site", "here", "--output", "json").json
    assert (found["agent"]["standing"], found["agent"]["epoch"]) == (standing, 3)
    assert bool(found["say"] and words and words in found["say"][0]) is bool(words)
    assert f"site here: {standing} since" in wattline("status").out


def test_gpus_that_others_hold_are_told(writing: Writing, wattline: Wattline) -> None:
    node = "here/r1-n1"
    before = wattline("status", "--site", "here", "--output", "json").json
    writing.step(Measured(at=writing.now, source="slurm", readings=((node, "others_gpus", 1.0),)))
    found = wattline("status", "--site", "here", "--output", "json").json
    assert (before["others_gpus"], found["others_gpus"]) == (0, 1)
    assert found["gpus_free"] == before["gpus_free"] - 1
    assert "GPUs that others hold, not through Wattline: 1" in wattline("status", "--site", "here").out


def test_an_unknown_site_gets_the_nearest_name_and_a_run_is_no_site(ran: str, wattline: Wattline) -> None:
    shown = wattline("status", "--site", "zuric")
    assert shown.code == 2
    assert "did you mean zurich?" in shown.err
    assert wattline("status", ran, "--site", "zurich").code == 2


def test_the_newest_run_is_the_one_that_came_last_though_the_clock_was_set_back(
    writing: Writing, wattline: Wattline
) -> None:
    for run, at in (("before", writing.now), ("after", writing.now - 3600.0)):
        job = JobRequest(job=f"{run}/train", run=run, project="nlp", phase="train", gpus=1)
        writing.step(RunSubmitted(at=at, project="nlp", run=run, pipeline="p", jobs=(job,)))
    assert [run["run_id"] for run in wattline("status", "-o", "json").json["runs"]] == ["after", "before"]
    assert wattline("explain", "train", "-o", "json").json["job"] == "after/train"
