"""What a pipeline would do here, told before anybody submits it."""

from __future__ import annotations

import subprocess
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
        ("prepare", "no recorded runs and no constraints.max_duration"),
        ("train", "max_duration: no recorded runs"),
    ]
    assert "wall" in told["estimate"]["not_estimated"]
    text = wattline("check", "--facility", "lab").out
    assert "words.txt is not pinned" in text
    assert "5 min" in text


def test_behind_a_queue_it_says_when_it_starts(pipeline: Path, writing: Writing, wattline: Wattline) -> None:
    alone = PIPELINE.replace("  prepare: {run: echo ready}\n", "").replace("    after: [prepare]\n", "")
    pipeline.write_text(alone)
    wait_in_line(writing)
    told = wattline("check", "--output", "json").json
    waits = told["estimate"]["queue_minutes"]
    assert 0.0 < waits["p50"] <= waits["p90"]
    assert "waits for" in told["phases"][0]["say"]


@pytest.mark.parametrize(
    ("mode", "code", "outcome"), [("refuse", 1, "refuse"), ("warn", 0, "warn")], ids=["refused", "warned"]
)
def test_a_queue_that_is_too_long_is_told_before_anybody_submits(
    pipeline: Path, writing: Writing, wattline: Wattline, mode: str, code: int, outcome: str
) -> None:
    alone = PIPELINE.replace("  prepare: {run: echo ready}\n", "").replace("    after: [prepare]\n", "")
    pipeline.write_text(alone)
    wait_in_line(writing)
    policy = pipeline.parent / "policy.yaml"
    policy.write_text(f"queue: {{max_wait: 1s, mode: {mode}}}\nclasses: {{urgent: {{priority: 9}}}}\n")
    told = wattline("check", "--policy", "policy.yaml", "--output", "json")
    assert told.code == code, told.err
    (said,) = [each for each in told.json["policy"] if each["rule"] == "queue.wait"]
    assert said["outcome"] == outcome
    assert "p50 " in said["message"]
    assert "submit again at " in said["fix"]
    sooner = [option for option in told.json["options"] if option["change"] == "ask for class urgent"]
    waits = told.json["estimate"]["queue_minutes"]["p50"]
    assert [option["effect"]["starts_minutes"] < waits for option in sooner] == [True]


def test_how_long_it_takes_is_what_it_took(ran: str, kept: Path, wattline: Wattline) -> None:
    told = wattline("check", str(kept / "team" / "wattline.yaml"), "--output", "json").json
    assert [phase["wall_from"] for phase in told["phases"]] == ["1 recorded run", "1 recorded run"]
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


def git(folder: Path, *words: str) -> None:
    names = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"]
    subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def committed(pipeline: Path) -> Path:
    git(pipeline.parent, "init", "-q", "-b", "main")
    git(pipeline.parent, "add", ".")
    git(pipeline.parent, "commit", "-qm", "first")
    return pipeline


def test_a_change_is_told_against_a_commit_and_against_an_earlier_report(
    committed: Path, home: Path, wattline: Wattline
) -> None:
    kept = committed.parent / "before.json"
    kept.write_text(wattline("check", "--facility", "lab", "--output", "json").out)
    committed.write_text(PIPELINE.replace("gpus: 1", "gpus: 2"))
    for base in ("main", "before.json"):
        told = wattline("check", "--facility", "lab", "--base", base, "--output", "json").json
        assert told["dirty"] is True
        assert told["diff"]["gpu_hours"]["delta"] == pytest.approx(1 / 12)
        assert told["diff"]["gpu_hours"]["fraction"] == pytest.approx(1.0)
    text = wattline("check", "--facility", "lab", "--base", "main").out
    assert "+100 % GPU-hours" in text


def test_a_pipeline_that_is_removed_saves_what_it_cost(
    committed: Path, home: Path, wattline: Wattline
) -> None:
    committed.unlink()
    told = wattline("check", "--facility", "lab", "--base", "main", "--output", "json")
    assert told.code == 0, told.err
    assert told.json["diff"]["gpu_hours"]["delta"] == pytest.approx(-1 / 12)
    assert "removed" in told.json["base"]["say"]


def test_a_pipeline_that_is_added_costs_all_it_costs(committed: Path, home: Path, wattline: Wattline) -> None:
    committed.rename(committed.with_name("other.yaml"))
    git(committed.parent, "rm", "-q", "--cached", "wattline.yaml")
    git(committed.parent, "commit", "-qm", "without")
    told = wattline("check", "other.yaml", "--facility", "lab", "--base", "main", "--output", "json").json
    assert told["diff"]["gpu_hours"]["base"] == 0.0
    assert told["base"]["pipeline"] is None


def test_a_base_that_is_wrong_is_no_reason_not_to_check(
    committed: Path, home: Path, wattline: Wattline
) -> None:
    committed.write_text("pipeline: [\n")
    git(committed.parent, "commit", "-qam", "broken")
    committed.write_text(PIPELINE)
    told = wattline("check", "--facility", "lab", "--base", "main", "--output", "json").json
    assert told["verdict"] == "warn"
    assert "the base's pipeline is wrong" in told["base"]["say"]
    assert told["diff"] == {}


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("markdown", "<!-- wattline:check:"),
        ("sarif", "{"),
        ("junit", "<?xml"),
        ("github", "::"),
        ("gitlab", "["),
    ],
)
def test_every_form_goes_to_stdout(
    pipeline: Path, home: Path, wattline: Wattline, form: str, begins: str
) -> None:
    told = wattline("check", "--facility", "lab", "--output", form)
    assert told.code == 0
    assert told.out.startswith(begins)


def test_all_forms_go_into_a_folder_at_once(pipeline: Path, home: Path, wattline: Wattline) -> None:
    told = wattline("check", "--facility", "lab", "--report", "told", "--output", "json")
    assert told.code == 0
    written = {path.name for path in (pipeline.parent / "told").iterdir()}
    assert written >= {"report.json", "comment.md", "report.sarif", "junit.xml", "metrics.txt"}
    assert (pipeline.parent / "told" / "report.json").read_text().strip() == told.out.strip()


def test_a_snapshot_stands_for_the_queue_it_was_taken_of(
    pipeline: Path,
    writing: Writing,
    wattline: Wattline,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    alone = PIPELINE.replace("  prepare: {run: echo ready}\n", "").replace("    after: [prepare]\n", "")
    pipeline.write_text(alone)
    wait_in_line(writing)
    here = wattline("check", "--output", "json").json
    assert wattline("snapshot", "queue.json").code == 0
    monkeypatch.setenv("WATTLINE_HOME", str(tmp_path / "elsewhere"))
    there = wattline("check", "--against", "queue.json", "--output", "json").json
    assert there["estimate"]["queue_minutes"] == here["estimate"]["queue_minutes"]
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"wattline_snapshot": 99, "at": 1}'])
def test_what_is_no_snapshot_is_told_as_that(
    pipeline: Path, home: Path, wattline: Wattline, text: str
) -> None:
    (pipeline.parent / "queue.json").write_text(text)
    told = wattline("check", "--against", "queue.json")
    assert told.code == 3
    assert "queue.json: is no snapshot" in told.err


def test_one_thing_is_named_to_hold_it_against(pipeline: Path, home: Path, wattline: Wattline) -> None:
    told = wattline("check", "--against", "queue.json", "--facility", "lab")
    assert told.code == 2
    assert "give one of them" in told.err


@pytest.mark.parametrize(
    ("mode", "code", "verdict"), [("report", 0, "pass"), ("warn", 0, "warn"), ("block", 1, "block")]
)
def test_a_team_says_how_far_a_check_may_go(
    pipeline: Path, home: Path, wattline: Wattline, mode: str, code: int, verdict: str
) -> None:
    pipeline.write_text(PIPELINE.replace("python train.py", "python trian.py"))
    (pipeline.parent / "policy.yaml").write_text(f"review: {{mode: {mode}}}\n")
    told = wattline("check", "--facility", "lab", "--policy", "policy.yaml", "--output", "json")
    assert (told.code, told.json["verdict"]) == (code, verdict)
    assert "trian.py" in told.json["reasons"][0]


@pytest.mark.parametrize(
    ("gate", "verdict"),
    [
        ("gpu_hours <= 1", "warn"),  # its data is not pinned
        ("gpu_hours <= 0.01", "block"),
        ("gpu_hours_added <= 0.01", "block"),
        ("wall_p90_hours <= 1", "warn"),  # not known: nothing says how long one phase takes
    ],
)
def test_a_review_holds_an_estimate_to_its_gates(
    committed: Path, home: Path, wattline: Wattline, gate: str, verdict: str
) -> None:
    committed.write_text(PIPELINE.replace("gpus: 1", "gpus: 2"))
    (committed.parent / "policy.yaml").write_text(f"review: {{gates: [{gate}]}}\n")
    command = ["check", "--facility", "lab", "--policy", "policy.yaml", "--base", "main", "-o", "json"]
    told = wattline(*command).json
    assert told["verdict"] == verdict
    (said,) = [each for each in told["policy"] if each["rule"] == "review.gate"]
    expected = {"block": "refuse"}.get(verdict, "warn" if "p90" in gate else "allow")
    assert said["outcome"] == expected
    assert said["message"].startswith(f"{gate}: ")
