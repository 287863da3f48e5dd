"""`wattline run` of phases that can run in two ways: which is chosen, and what may be released."""

from __future__ import annotations

from typing import Any

from cli.running import POLICY, Desk, Ran
from wattline.cli.app import app
from wattline.state import ActionKind

SCRIPT = """
import json, os, pathlib
steps = int(os.environ.get("STEPS", "1000"))
pathlib.Path("out/model.txt").write_text(f"{os.environ['WATTLINE_MODE']} {steps}\\n")
pathlib.Path("out/metrics.json").write_text(json.dumps({"steps": steps}))
"""
TWO_WAYS = {
    "approximate": {"env": {"STEPS": "10"}, "max_duration": "1min"},
    "canonical": {"max_duration": "10h"},
}


def desk_with(desk: Desk, *, train: dict[str, Any], policy: dict[str, Any], **more: Any) -> Ran:
    desk.write("train.py", SCRIPT)
    phase = {"run": "python train.py", "resources": {"gpus": 1}, "modes": TWO_WAYS, "mode": "auto"}
    desk.pipeline({"train": phase | train}, **more)
    desk.write("policy.yaml", POLICY | policy)
    return desk.run()


def result(desk: Desk) -> str:
    (found,) = desk.home.glob("runs/*/train/1/work/out/model.txt")
    return found.read_text()


def chosen(desk: Desk) -> list[str]:
    starts = [action for step in desk.steps() for action in step.decision.actions]
    return [action.mode for action in starts if action.kind is ActionKind.START]


def test_an_exploratory_phase_that_costs_much_runs_approximately_and_says_why(desk: Desk) -> None:
    ran = desk_with(desk, train={}, policy={"modes": {"cost_above": 5}})
    assert ran.code == 0, ran.err
    assert result(desk) == "approximate 10\n"
    assert chosen(desk) == ["approximate"]
    assert [phase["mode"] for phase in ran.json["phases"]] == ["approximate"]
    (job,) = desk.state().jobs.values()
    verdict = job.verdicts[0]
    assert (verdict.rule, verdict.say) == ("mode.approximate", "it would cost much")
    assert verdict.numbers["cost_usd"] > verdict.numbers["limit_usd"] == 5.0


def test_an_approximate_phase_fits_a_budget_that_the_canonical_one_would_not(desk: Desk) -> None:
    """Ten hours would wait until the week ends; a minute is admitted."""
    policy = {"teams": {"lab": {"quota": {"gpu_hours": 1}}}, "modes": {"cost_above": 0}}
    ran = desk_with(desk, train={}, policy=policy)
    assert ran.code == 0, ran.err
    assert result(desk) == "approximate 10\n"
    (account,) = desk.state().accounts.values()
    assert account.promised.gpu_hours == 0


def test_where_nothing_asks_for_less_it_runs_canonically(desk: Desk) -> None:
    ran = desk_with(desk, train={}, policy={})
    assert ran.code == 0, ran.err
    assert result(desk) == "canonical 1000\n"
    assert chosen(desk) == ["canonical"]


def test_what_a_release_rests_on_is_canonical_whatever_it_costs(desk: Desk) -> None:
    ran = desk_with(
        desk, train={}, policy={"modes": {"cost_above": 0}}, release={"name": "small"}, gates=["steps > 100"]
    )
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    assert result(desk) == "canonical 1000\n"
    assert ran.json["release"] is not None


def test_an_approximate_result_is_not_released_and_says_how_it_would_be(desk: Desk) -> None:
    ran = desk_with(desk, train={"mode": "approximate"}, policy={}, release={"name": "small"})
    assert (ran.code, ran.json["status"]) == (1, "gates failed")
    assert "an approximate result is never released: train ran approximately" in ran.json["say"]
    assert "`mode: canonical` and run again" in ran.json["say"]
    assert not desk.found("releases/small/*/current")
    again = desk_with(desk, train={"mode": "canonical"}, policy={}, release={"name": "small"})
    assert (again.code, again.json["status"]) == (0, "succeeded"), again.err


def test_a_release_of_little_risk_may_be_tried_approximately_first(desk: Desk) -> None:
    modes = {"risk": {"staging": "20%"}, "canonical_above": "15%", "cost_above": 0}
    release = {"name": "small", "to": "staging", "change": "small"}
    ran = desk_with(desk, train={}, policy={"modes": modes}, release=release)
    assert result(desk) == "approximate 10\n"
    assert ran.json["status"] == "gates failed"


def test_a_run_without_a_release_cannot_be_promoted_by_hand_either(desk: Desk, monkeypatch: Any) -> None:
    from typer.testing import CliRunner

    ran = desk_with(desk, train={"mode": "approximate"}, policy={})
    assert ran.code == 0
    monkeypatch.setenv("WATTLINE_HOME", str(desk.home))
    told = CliRunner().invoke(app, ["promote", ran.json["run_id"]])
    assert told.exit_code != 0
    assert not desk.found("releases/*/*/current")
