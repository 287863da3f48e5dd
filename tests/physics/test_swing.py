"""How far steps of training swing a feed, and how swings of several jobs add up."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.physics.swing import most_swing_watts, predict_joint_swing_watts, predict_swing_watts

SWINGS = st.lists(st.floats(1.0, 1e6), max_size=20)


def test_all_gpus_of_a_job_swing_together() -> None:
    assert predict_swing_watts(8, 700.0, 200.0) == 4000.0
    assert predict_swing_watts(8, 200.0, 700.0) == 0.0


@pytest.mark.parametrize(("jobs", "joint"), [(1, 1.0), (2, 2.0), (4, 4.0), (9, 6.0), (100, 20.0)])
def test_few_jobs_count_as_in_phase_and_many_by_their_squares(jobs: int, joint: float) -> None:
    assert predict_joint_swing_watts([1.0] * jobs) == pytest.approx(joint)


@given(SWINGS)
def test_together_they_swing_no_less_than_the_largest_and_no_more_than_all_in_phase(
    swings: list[float],
) -> None:
    joint = predict_joint_swing_watts(swings)
    assert max(swings, default=0.0) * (1 - 1e-9) <= joint <= math.fsum(swings)


@given(SWINGS, st.floats(1.0, 1e7))
def test_the_most_that_may_join_just_fits(others: list[float], limit: float) -> None:
    most = most_swing_watts(others, limit)
    if most > 0.0:
        assert predict_joint_swing_watts([*others, 0.999 * most]) <= limit * (1 + 1e-9)
        assert predict_joint_swing_watts([*others, 1.001 * most]) > limit * (1 - 1e-9)


def test_square_waves_out_of_phase_are_nearly_always_within_it() -> None:
    """Thirty jobs with periods and duties of their own, looked at 4000 times."""
    draw = random.Random("swings")
    jobs = [
        (draw.uniform(5, 50), draw.uniform(0.4, 3.0), draw.random(), draw.uniform(0.3, 0.7))
        for _ in range(30)
    ]

    def load(at: float) -> float:
        return sum(watts for watts, period, phase, duty in jobs if (at / period + phase) % 1.0 < duty)

    loads = sorted(load(draw.uniform(0, 10_000)) for _ in range(4000))
    low, high = loads[100], loads[-101]  # 95 % lie between
    assert high - low <= predict_joint_swing_watts([watts for watts, *_ in jobs])
