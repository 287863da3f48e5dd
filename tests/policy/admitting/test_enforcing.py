"""Rules that act on what runs."""

from __future__ import annotations

import pytest

from building import Hall, a_job, a_policy, a_site, a_world, kinds
from wattline.state import JobState

BIG = {"name": "no-big", "when": "job.gpus >= 8", "say": "eight are too many"}


def running(checkpoints: bool, mode: str) -> Hall:
    """A job that began before the rule was there."""
    hall = a_world(a_site(nodes=1))
    hall.run(a_job(gpus=8, checkpoints=checkpoints))
    hall.wait(60)
    hall.policy = a_policy(rules=[{**BIG, "mode": mode}])
    return hall


def test_who_saves_is_paused_and_says_why() -> None:
    hall = running(checkpoints=True, mode="enforce")
    decision = hall.decide()
    assert kinds(decision) == [("pause", "r1/train")]
    assert "eight are too many" in decision.actions[0].because
    assert [verdict.rule for verdict in decision.verdicts if verdict.job == "r1/train"] == ["rule.no-big"]


def test_it_comes_back_once_the_rule_no_longer_holds() -> None:
    hall = running(checkpoints=True, mode="enforce")
    hall.obey(hall.decide())
    hall.wait(60)
    assert kinds(hall.decide()) == []
    assert hall.job().state is JobState.PAUSED
    hall.policy = a_policy()
    hall.wait(60)
    assert kinds(hall.decide()) == [("resume", "r1/train")]


def test_who_does_not_save_is_stopped() -> None:
    assert kinds(running(checkpoints=False, mode="enforce").decide()) == [("stop", "r1/train")]


@pytest.mark.parametrize("mode", ["report", "warn", "block"])
def test_other_modes_leave_what_runs_alone(mode: str) -> None:
    assert kinds(running(checkpoints=True, mode=mode).decide()) == []


def test_it_is_looked_at_again_by_itself() -> None:
    hall = running(checkpoints=True, mode="block")
    hall.policy = a_policy(rules=[{**BIG, "when": "job.gpus >= 64", "mode": "enforce"}])
    decision = hall.decide()
    assert decision.revisit_at is not None
    assert hall.at < decision.revisit_at <= hall.at + hall.policy.thresholds.settle
