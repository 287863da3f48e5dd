"""Throttle: states change at the device's limits, with hysteresis, and heat is told from power."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.facility import DEVICES
from wattline.physics import (
    HeatState,
    LimitedBy,
    predict_heat_speed,
    predict_heat_state,
    predict_pace,
    predict_speed,
)

A100 = DEVICES["A100"]  # 85 / 89 / 92 °C


@pytest.mark.parametrize(
    ("before", "celsius", "after"),
    [
        (HeatState.NORMAL, 88.9, HeatState.NORMAL),
        (HeatState.NORMAL, 89.0, HeatState.SLOWDOWN),
        (HeatState.SLOWDOWN, 85.1, HeatState.SLOWDOWN),
        (HeatState.SLOWDOWN, 85.0, HeatState.NORMAL),
        (HeatState.NORMAL, 92.0, HeatState.SHUTDOWN),
        (HeatState.SHUTDOWN, 82.1, HeatState.SHUTDOWN),
        (HeatState.SHUTDOWN, 82.0, HeatState.NORMAL),
    ],
)
def test_each_state_is_entered_at_its_limit_and_left_only_when_cooler(
    before: HeatState, celsius: float, after: HeatState
) -> None:
    assert predict_heat_state(A100, celsius, before) is after


@pytest.mark.parametrize(("celsius", "speed"), [(85.0, 1.0), (87.0, 0.75), (88.0, 0.625)])
def test_speed_falls_in_a_line_between_throttle_and_slowdown(celsius: float, speed: float) -> None:
    assert predict_heat_speed(A100, celsius, HeatState.NORMAL) == pytest.approx(speed)


def test_slowdown_halves_the_speed_and_shutdown_ends_it() -> None:
    assert predict_heat_speed(A100, 86.0, HeatState.SLOWDOWN) == 0.5
    assert predict_heat_speed(A100, 83.0, HeatState.SHUTDOWN) == 0.0


@pytest.mark.parametrize(
    ("heat_speed", "cap_fraction", "speed", "limited_by"),
    [
        (1.0, 1.0, 1.0, LimitedBy.NONE),
        (1.0, 0.7, 0.941, LimitedBy.POWER),
        (0.5, 0.7, 0.5, LimitedBy.HEAT),
        (0.98, 0.7, 0.941, LimitedBy.POWER),
        (0.9, 1.0, 0.9, LimitedBy.HEAT),
    ],
)
def test_the_tighter_of_heat_and_power_is_named(
    heat_speed: float, cap_fraction: float, speed: float, limited_by: LimitedBy
) -> None:
    pace = predict_pace(A100, heat_speed, cap_fraction)
    assert pace.speed == pytest.approx(speed)
    assert pace.limited_by is limited_by


def test_a_cap_below_the_least_limit_slows_no_further() -> None:
    assert predict_pace(A100, 1.0, 0.05).speed == predict_speed(0.25)


@given(st.floats(0, 120), st.floats(0, 120), st.sampled_from(HeatState))
def test_a_hotter_device_is_never_faster(one: float, other: float, before: HeatState) -> None:
    cool, hot = sorted((one, other))

    def speed(celsius: float) -> float:
        return predict_heat_speed(A100, celsius, predict_heat_state(A100, celsius, before))

    assert speed(hot) <= speed(cool)
