"""`wattline run` killed with SIGKILL, and resumed: the same model, nothing left, nothing done twice."""

from __future__ import annotations

import pytest

from cli.running import Desk, assert_nothing_is_left, assert_nothing_runs, end, kill, model_of, wait_until

# By what there is to see in the state folder when it happens.
_MOMENTS = {
    "while preparing": "runs/*/prepare/1/started.json",
    "when training has just started": "runs/*/train/1/started.json",
    "after a checkpoint": "sites/*/checkpoints/*/train/checkpoints/step-*",
    "while evaluating": "runs/*/evaluate/1/started.json",
    "when all phases have ended": "runs/*/evaluate/1/result.json",
    "while releasing": "releases/small/staging",
}


@pytest.mark.parametrize("moment", _MOMENTS)
def test_a_run_that_was_killed_goes_on_to_the_same_end(desk: Desk, moment: str) -> None:
    desk.training(steps=12, seconds=0.1)
    process = desk.start()
    wait_until(lambda: desk.found(_MOMENTS[moment]), process)
    kill(process)
    assert_nothing_runs(desk)
    ran = desk.run("--resume")
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    assert model_of(ran.json) == desk.by_hand()
    assert ran.json["release"]["number"] == 1
    assert len(list(desk.home.glob("releases/small/staging/*/artifacts"))) == 2  # one, and the link to it
    assert_nothing_is_left(desk)


def test_a_run_that_was_killed_while_it_resumed_goes_on_too(desk: Desk) -> None:
    desk.training(steps=600, seconds=0.1)
    process = desk.start()
    wait_until(lambda: desk.found("sites/*/checkpoints/*/train/checkpoints/step-*"), process)
    kill(process)
    again = desk.start("--resume")
    wait_until(lambda: desk.found("runs/*/train/2/started.json"), again)
    kill(again)
    desk.hurry()
    ran = desk.run("--resume")
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    (train,) = (phase for phase in ran.json["phases"] if phase["phase"] == "train")
    assert [attempt["ending"] for attempt in train["attempts"]] == ["lost", "lost", "succeeded"]
    assert model_of(ran.json) == desk.by_hand()
    assert_nothing_is_left(desk)


def test_a_supervisor_that_is_killed_counts_as_a_failure_of_its_attempt(desk: Desk) -> None:
    """Else a script that ends its supervisor would be started again without end."""
    desk.pipeline(
        {"train": {"run": "kill -9 $PPID; sleep 600", "restart": {"max": 1}}},
    )
    desk.write("policy.yaml", {"thresholds": {"restart_backoff": "0s"}})
    ran = end(desk.start())
    assert (ran.code, ran.json["status"]) == (1, "failed")
    assert "its supervisor ended without a result" in ran.json["say"]
    assert len(ran.json["phases"][0]["attempts"]) == 2
    assert_nothing_is_left(desk)
