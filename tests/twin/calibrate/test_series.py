from __future__ import annotations

import numpy as np
import pytest

from wattline.twin.calibrate.series import Series, add_up, build_series, hold_until_told, rounding_step, swing


def a_series(*readings: tuple[float, float]) -> Series:
    return build_series([at for at, _ in readings], [value for _, value in readings])[0]


def test_readings_are_sorted_and_the_last_word_on_a_moment_counts() -> None:
    series, repeated = build_series([3.0, 1.0, 3.0, 2.0], [30.0, 10.0, 33.0, 20.0])
    assert series.at.tolist() == [1.0, 2.0, 3.0]
    assert series.values.tolist() == [10.0, 20.0, 33.0]
    assert repeated == 1


def test_between_readings_a_series_is_what_was_last_said_what_comes_or_a_line() -> None:
    series = a_series((0.0, 10.0), (10.0, 20.0))
    moments = np.array([0.0, 5.0, 10.0])
    assert series.last(moments).tolist() == [10.0, 10.0, 20.0]
    assert series.next(moments).tolist() == [10.0, 20.0, 20.0]
    assert series.between(moments).tolist() == [10.0, 15.0, 20.0]


def test_a_meter_that_was_away_is_noticed_and_one_that_is_slow_is_not() -> None:
    quick = a_series(*((float(at), 1.0) for at in [*range(100), *range(500, 600)]))
    assert quick.silent(np.array([98.0, 99.0]), np.array([99.0, 500.0])).tolist() == [False, True]
    slow = a_series(*((400.0 * at, 1.0) for at in range(10)))
    assert not slow.silent(slow.at[:-1], slow.at[1:]).any()


def test_what_only_tells_changes_stands_still_until_it_was_last_asked() -> None:
    told = a_series((0.0, 1.0), (8.0, 5.0), (9.0, 6.0))
    held = hold_until_told(told, np.arange(10.0))
    assert held.at.tolist() == [0.0, 7.0, 8.0, 9.0]
    assert held.values.tolist() == [1.0, 1.0, 5.0, 6.0]


def test_meters_are_added_up_while_all_of_them_speak() -> None:
    total = add_up([a_series((0.0, 1.0), (10.0, 1.0)), a_series((5.0, 2.0), (20.0, 2.0))])
    assert total is not None
    assert (total.at.tolist(), total.values.tolist()) == ([5.0, 10.0], [3.0, 3.0])
    assert add_up([a_series((0.0, 1.0)), a_series((9.0, 1.0))]) is None


@pytest.mark.parametrize(
    ("values", "step"), [([40, 63, 41], 1.0), ([40.5, 63], 0.5), ([40.1, 63], 0.1), ([0.123], 0.0)]
)
def test_the_step_that_values_are_rounded_to_is_seen(values: list[float], step: float) -> None:
    assert rounding_step(np.array(values, dtype=np.float64)) == step


def test_one_odd_reading_is_no_swing() -> None:
    values = np.full(1000, 70.0)
    values[500] = 400.0
    assert swing(values) == 0.0
