"""`wattline run` and Ctrl-C: once saves and pauses, twice ends everything at once."""

from __future__ import annotations

import signal

from cli.running import Desk, assert_nothing_is_left, assert_nothing_runs, end, model_of, wait_until


def test_once_pauses_at_a_checkpoint_and_resume_finishes(desk: Desk) -> None:
    desk.training(steps=600, seconds=0.1, train={"checkpoint": {"every": "10min"}})
    process = desk.start()
    wait_until(lambda: desk.found("runs/*/train/1/reports.jsonl"), process)
    paused = end(process, signal.SIGINT)
    assert paused.code == 130
    assert "wattline run --resume" in paused.err
    (train,) = (phase for phase in paused.json["phases"] if phase["phase"] == "train")
    assert (train["state"], [one["ending"] for one in train["attempts"]]) == ("paused", ["paused"])
    assert_nothing_is_left(desk)
    desk.hurry()
    ran = desk.run("--resume")
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    assert ran.json["run_id"] == paused.json["run_id"]
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)


def test_twice_ends_at_once_what_does_not_listen(desk: Desk) -> None:
    stubborn = "trap '' TERM; touch out/listening; while :; do sleep 600; done"
    desk.pipeline({"train": {"run": stubborn}, "check": {"run": "true", "after": ["train"]}})
    process = desk.start()
    wait_until(lambda: desk.found("runs/*/train/1/work/out/listening"), process)
    process.send_signal(signal.SIGINT)
    # Signals of one kind that nobody has handled yet are one signal: this one has been, when it is decided.
    wait_until(lambda: len(desk.actions("train")) > 1, process)
    ended = end(process, signal.SIGINT)
    assert ended.code == 130
    assert [phase["state"] for phase in ended.json["phases"]] == ["paused", "blocked"]
    assert_nothing_is_left(desk)


def test_a_job_without_checkpoints_is_stopped_and_begins_again(desk: Desk) -> None:
    desk.pipeline({"train": "import os, time; time.sleep(600 if os.environ['WATTLINE_EPOCH'] == '1' else 0)"})
    process = desk.start()
    wait_until(lambda: desk.found("runs/*/train/1/started.json"), process)
    assert end(process, signal.SIGTERM).code == 130
    assert_nothing_runs(desk)
    ran = desk.run("--resume")
    assert (ran.code, ran.json["status"]) == (0, "succeeded")
    assert [one["ending"] for one in ran.json["phases"][0]["attempts"]] == ["stopped", "succeeded"]
