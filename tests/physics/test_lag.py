import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.physics.lag import (
    predict_cascaded,
    predict_followed,
    predict_ramp_turn_seconds,
    predict_turn_seconds,
)

seconds = st.floats(0.1, 1000.0)


def test_a_lag_has_come_all_but_a_third_after_its_time_constant() -> None:
    assert predict_followed(10.0, 10.0) == pytest.approx(1.0 - math.exp(-1.0))


@given(seconds, seconds, seconds)
def test_a_cascade_does_not_care_which_lag_is_first(span: float, first: float, second: float) -> None:
    assert predict_cascaded(span, first, second) == pytest.approx(
        predict_cascaded(span, second, first), abs=1e-12
    )


@given(seconds, seconds)
def test_a_cascade_of_equal_lags_is_the_limit_of_nearly_equal_ones(span: float, lag: float) -> None:
    near = predict_cascaded(span, lag, lag * (1.0 + 1e-7))
    assert predict_cascaded(span, lag, lag) == pytest.approx(near, abs=1e-6)


@given(st.floats(-50.0, 50.0), st.floats(-50.0, 50.0), seconds, seconds)
def test_a_path_is_level_where_it_turns(pull: float, gap: float, first: float, second: float) -> None:
    turn = predict_turn_seconds(pull, gap, first, second)

    def path(at: float) -> float:
        return pull * predict_followed(at, second) + gap * predict_cascaded(at, first, second)

    if 1e-3 < turn < 1e4:
        step = 1e-3 * turn
        before, there, after = path(turn - step), path(turn), path(turn + step)
        assert (there - before) * (there - after) >= -1e-12


@given(st.floats(0.1, 50.0), st.floats(0.01, 5.0), seconds)
def test_a_die_that_cools_into_warming_coolant_turns_once(pull: float, ramp: float, lag: float) -> None:
    turn = predict_ramp_turn_seconds(-pull, ramp, lag)
    slope = -pull / lag * math.exp(-turn / lag) + ramp * predict_followed(turn, lag)
    assert slope == pytest.approx(0.0, abs=1e-9)
    assert predict_ramp_turn_seconds(pull, ramp, lag) == 0.0
