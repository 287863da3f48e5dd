"""Power: draw stays between idle and the cap, and the measured cap curve is met at its points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.facility import DEVICES, Device
from wattline.physics import (
    cap_for_watts,
    predict_gpu_watts,
    predict_node_supply_watts,
    predict_other_watts,
    predict_rectifier_watts,
    predict_speed,
)

A100 = DEVICES["A100"]
devices = st.sampled_from(list(DEVICES.values()))
fractions = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("cap_fraction", "speed"),
    [(1.0, 1.0), (0.9, 0.987), (0.8, 0.965), (0.7, 0.941), (0.6, 0.899), (0.5, 0.853), (0.4, 0.725), (0, 0)],
)
def test_the_cap_curve_meets_each_measured_point(cap_fraction: float, speed: float) -> None:
    assert predict_speed(cap_fraction) == pytest.approx(speed, abs=1e-12)


@given(fractions, fractions)
def test_a_looser_cap_never_reduces_speed(one: float, other: float) -> None:
    tight, loose = sorted((one, other))
    assert predict_speed(tight) <= predict_speed(loose)


def test_the_cliff_below_forty_percent_is_steeper_than_the_curve_above_it() -> None:
    assert predict_speed(0.4) - predict_speed(0.3) > predict_speed(0.5) - predict_speed(0.4)


def test_a_gpu_draws_its_idle_watts_without_work_and_its_limit_at_full_work() -> None:
    assert predict_gpu_watts(A100, 0.0, 1.0) == A100.idle_watts
    assert predict_gpu_watts(A100, 1.0, 1.0) == A100.limit_watts


def test_a_cap_cuts_draw_off_and_stops_at_the_least_limit() -> None:
    assert predict_gpu_watts(A100, 1.0, 0.7) == pytest.approx(280.0)
    assert predict_gpu_watts(A100, 1.0, 0.1) == A100.least_limit_watts


@given(devices, fractions, fractions, fractions)
def test_a_looser_cap_and_more_work_never_lower_draw(
    device: Device, utilisation: float, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert predict_gpu_watts(device, utilisation, low) <= predict_gpu_watts(device, utilisation, high)
    assert predict_gpu_watts(device, low, utilisation) <= predict_gpu_watts(device, high, utilisation)


@given(devices, st.floats(0.0, 2000.0))
def test_the_cap_for_a_budget_keeps_a_busy_gpu_within_it(device: Device, watts: float) -> None:
    cap_fraction = cap_for_watts(device, watts)
    if cap_fraction is None:
        assert predict_gpu_watts(device, 1.0, 0.0) > watts
    else:
        assert predict_gpu_watts(device, 1.0, cap_fraction) <= watts * (1 + 1e-12)


def test_a_box_draws_a_third_of_its_own_watts_when_it_does_nothing() -> None:
    assert predict_other_watts(1000.0, 0.0) == pytest.approx(350.0)
    assert predict_other_watts(1000.0, 1.0) == pytest.approx(1000.0)


def test_losses_follow_the_published_stages() -> None:
    assert predict_node_supply_watts(967.0) == pytest.approx(1000.0)
    assert predict_rectifier_watts(943.0) == pytest.approx(1000.0)
