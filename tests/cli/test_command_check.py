"""What a pipeline would do here, told before anybody submits it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.looking import PIPELINE, TRAIN, Wattline, Writing
from cli.test_command_explain import wait_in_line

_KEYS = {
    "verdict",
    "preflight",
    "estimate",
    "base",
    "diff",
    "policy",
    "options",
    "not_estimated",
}


@pytest.fixture
def pipeline(in_folder: Path) -> Path:
    (in_folder / "data").mkdir()
    (in_folder / "data" / "words.txt").write_text("one two three\n")
    (in_folder / "train.py").write_text(TRAIN)
    path = in_folder / "wattline.yaml"
    path.write_text(PIPELINE)
    return path


def test_nothing_is_submitted_and_nothing_is_written(pipeline: Path, home: Path, wattline: Wattline) -> None:
    told = wattline("check", "--output", "json")
    assert told.code == 0, told.err
    assert told.json.keys() >= _KEYS
    assert not home.exists()


def test_on_an_empty_facility_it_starts_now_and_costs_at_most_what_its_longest_does(
    pipeline: Path, home: Path, wattline: Wattline
) -> None:
    told = wattline("check", "--facility", "lab", "--output", "json").json
    assert told["verdict"] == "warn", "its data is not pinned"
    assert told["estimate"]["queue_minutes"] == {"p50": 0.0, "p90": 0.0}
    assert told["estimate"]["gpu_hours"] == pytest.approx(1 / 12)
    assert told["estimate"]["cost_usd"]["total"] > 0
    assert [(phase["phase"], phase["wall_from"]) for phase in told["phases"]] == [
        ("prepare", "nothing"),
        ("train", "constraints.max_duration"),
    ]
    text = wattline("check", "--facility", "lab").out
    assert "small: warn" in text
    assert "at most 5 min" in text


def test_behind_a_queue_it_says_when_it_starts(pipeline: Path, writing: Writing, wattline: Wattline) -> None:
    alone = PIPELINE.replace("  prepare: {run: echo ready}\n", "").replace("    after: [prepare]\n", "")
    pipeline.write_text(alone)
    wait_in_line(writing)
    told = wattline("check", "--output", "json").json
    waits = told["estimate"]["queue_minutes"]
    assert 0.0 < waits["p50"] <= waits["p90"]
    assert told["phases"][0]["blocked_by"] is not None


def test_how_long_it_takes_is_what_it_took(ran: str, kept: Path, wattline: Wattline) -> None:
    told = wattline("check", str(kept / "team" / "wattline.yaml"), "--output", "json").json
    assert [phase["wall_from"] for phase in told["phases"]] == ["recorded runs", "recorded runs"]
    assert 0.0 < told["estimate"]["wall_hours"] < 0.1


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("gpus: 1", "gpus: 4096", "ask for less"),
        ("python train.py", "python trian.py", "trian.py"),
    ],
)
def test_what_cannot_run_is_blocked_with_the_reason(
    pipeline: Path, home: Path, wattline: Wattline, before: str, after: str, why: str
) -> None:
    pipeline.write_text(PIPELINE.replace(before, after))
    told = wattline("check", "--output", "json")
    assert (told.code, told.json["verdict"]) == (1, "block")
    assert why in told.out


def test_a_pipeline_that_is_not_there_cannot_be_evaluated(
    in_folder: Path, home: Path, wattline: Wattline
) -> None:
    told = wattline("check")
    assert told.code == 3
    assert "wattline.yaml: there is no such file" in told.err
