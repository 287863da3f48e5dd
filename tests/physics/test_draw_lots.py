"""Draw by lot: levels over many jobs look like GPUs that hold a job."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wattline.physics.draw_lots import predict_draw_utilisation
from wattline.physics.utilisation import A100_DRAW

lots = st.floats(0.0, 1.0)
EVENLY = [(number + 0.5) / 400 for number in range(400)]


def share_of_levels(low: float, high: float) -> float:
    levels = [predict_draw_utilisation(one, other) for one in EVENLY for other in EVENLY]
    return sum(low < level <= high for level in levels) / len(levels)


@given(lots, lots)
def test_a_level_is_between_idle_and_a_little_above_the_limit(lot_1: float, lot_2: float) -> None:
    assert 0.0 <= predict_draw_utilisation(lot_1, lot_2) <= 1.12


@given(lots, lots, lots)
def test_a_larger_lot_never_gives_a_lower_level(one: float, other: float, fixed: float) -> None:
    low, high = sorted((one, other))
    assert predict_draw_utilisation(low, fixed) <= predict_draw_utilisation(high, fixed) + 1e-12
    assert predict_draw_utilisation(fixed, low) <= predict_draw_utilisation(fixed, high) + 1e-12


def test_few_jobs_hold_gpus_and_do_nothing() -> None:
    assert 0.07 < share_of_levels(-1.0, 0.0) < 0.1


def test_about_one_busy_job_in_ten_draws_more_than_the_limit() -> None:
    assert 0.06 < share_of_levels(1.0, 2.0) < 0.13


def test_at_full_duty_levels_follow_the_fitted_curve() -> None:
    room_watts = A100_DRAW.limit_watts - A100_DRAW.idle_watts
    for lot in EVENLY[10:-10]:
        watts = A100_DRAW.idle_watts + room_watts * predict_draw_utilisation(1.0, lot)
        assert abs(A100_DRAW.share_below(watts, 1.0) - lot) < 0.01
