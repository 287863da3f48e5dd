"""What the last runs of a model bought, and whether another is worth it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import a_world
from checks.estimate.recording import record_run
from wattline.checks.estimate import Goal, Trial, goal_of, trials_of, weigh_runs

ACCURACY = Goal("accuracy", True, 0.9)


def trials(*values: float, usd: float = 10.0) -> list[Trial]:
    return [Trial(value, usd) for value in values]


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        ((0.5, 0.6, 0.7), "too early"),
        ((0.5, 0.6, 0.7, 0.8, 0.86), "continue"),
        ((0.5, 0.8, 0.92, 0.92, 0.91, 0.92), "stop"),  # the gate holds, nothing is gained any more
        ((0.5, 0.8, 0.85, 0.85, 0.84, 0.85), "redesign"),  # nothing is gained, and the gate is not reached
        ((0.2, 0.5, 0.8, 0.801, 0.803, 0.805), "redesign"),  # what is gained costs many times as much
        ((0.1, 0.85, 0.95, 0.951, 0.953, 0.955), "stop"),
    ],
)
def test_the_advice_follows_from_what_the_newest_runs_gained(values: tuple[float, ...], advice: str) -> None:
    assert weigh_runs(ACCURACY, trials(*values)).advice == advice


def test_a_gate_that_is_too_far_at_this_price_wants_another_design() -> None:
    found = weigh_runs(Goal("accuracy", True, 0.99), trials(0.50, 0.52, 0.54, 0.56, 0.58))
    assert found.advice == "redesign"
    assert "USD away" in found.say


def test_the_price_is_that_of_one_hundredth_of_what_the_gate_asks() -> None:
    found = weigh_runs(Goal("score", True, 200.0), trials(70.0, 80.0, 90.0, 95.0, 100.0))
    assert found.usd_per_improvement == pytest.approx(30.0 / 10.0)


def test_lower_is_better_where_the_gate_says_so() -> None:
    found = weigh_runs(Goal("loss", False, 1.0), trials(4.0, 3.0, 2.5, 2.2, 2.0))
    assert found.advice == "continue"
    assert found.usd_per_improvement is not None


@given(st.lists(st.floats(-1e6, 1e6), max_size=30), st.floats(0.0, 1e6), st.booleans())
def test_any_history_gets_an_answer(values: list[float], usd: float, higher: bool) -> None:
    found = weigh_runs(Goal("m", higher, 0.0), trials(*values, usd=usd))
    assert found.runs == len(values)
    assert found.say
    assert found.usd_per_improvement is None or found.usd_per_improvement >= 0.0


@pytest.mark.parametrize(
    ("gates", "goal"),
    [
        (["accuracy >= 0.92"], Goal("accuracy", True, 0.92)),
        (["latency_ms < 50"], Goal("latency_ms", False, 50.0)),
        (["a > b", "loss <= 2e-1"], Goal("loss", False, 0.2)),
        (["accuracy >= 1.2.3"], None),
        ([], None),
    ],
)
def test_a_gate_says_which_way_is_better(gates: list[str], goal: Goal | None) -> None:
    assert goal_of(gates) == goal


def test_values_come_from_what_gates_measured() -> None:
    hall = a_world()
    for number, accuracy in enumerate((0.5, 0.7, None, 0.8)):
        record_run(hall, f"r{number}", 3600.0, accuracy=accuracy)
    found = trials_of(hall.state, "tiny", "accuracy")
    assert [trial.value for trial in found] == [0.5, 0.7, 0.8]
    assert all(trial.usd == pytest.approx(1.02) for trial in found)
    assert trials_of(hall.state, "another", "accuracy") == []
