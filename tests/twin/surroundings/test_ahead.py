"""What is expected of a series comes from its past alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.twin.surroundings.ahead import LEAST_HISTORY_HOURS, expect_hours


def a_day_like_series(hours: int) -> list[float | None]:
    return [300.0 + 100.0 * math.cos(math.pi * hour / 12.0) for hour in range(hours)]


def test_what_repeats_by_the_day_is_expected_to_go_on() -> None:
    series = a_day_like_series(9 * 24 + 48)
    assert expect_hours(series[: 9 * 24], 48) == pytest.approx(series[9 * 24 :])


def test_a_level_that_has_shifted_wears_off() -> None:
    past = [200.0] * (8 * 24 - 3) + [260.0] * 3
    ahead = expect_hours(past, 48)
    assert ahead[0] == pytest.approx(260.0, abs=1.0)
    known = [value for value in ahead[:20] if value is not None]
    assert known == sorted(known, reverse=True)
    assert known[-1] < 235.0


def test_holes_count_for_nothing() -> None:
    series = a_day_like_series(9 * 24)
    for hole in (5, 100, 101, 150, len(series) - 1, len(series) - 30):
        series[hole] = None
    assert expect_hours(series, 24) == pytest.approx(a_day_like_series(10 * 24)[9 * 24 :], abs=1.0)


def test_an_hour_that_was_never_known_is_not_guessed() -> None:
    series = a_day_like_series(9 * 24)
    series[6::24] = [None] * 9
    assert [hour for hour, value in enumerate(expect_hours(series, 48)) if value is None] == [6, 30]


def test_too_short_a_past_tells_nothing() -> None:
    assert expect_hours([1.0] * (LEAST_HISTORY_HOURS - 1), 3) == [None, None, None]
    assert expect_hours([1.0] * LEAST_HISTORY_HOURS, 3) == pytest.approx([1.0, 1.0, 1.0])


@given(st.lists(st.none() | st.floats(-1e5, 1e5), max_size=200), st.integers(0, 72))
def test_any_past_gives_so_many_hours_of_numbers_or_none(past: list[float | None], hours: int) -> None:
    ahead = expect_hours(past, hours)
    assert len(ahead) == hours
    assert all(value is None or math.isfinite(value) for value in ahead)
