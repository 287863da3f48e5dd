"""Coolant: its closed form keeps the energy balance and moves the right way."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline.facility import CoolingKind, Loop
from wattline.physics import (
    ThermalInputs,
    advance_coolant,
    loop_parameters,
    predict_capacity_watts,
    predict_steady_coolant,
)

LOOP = Loop(
    name="crah",
    kind=CoolingKind.AIR,
    capacity_watts=20_000.0,
    supply_celsius=22.0,
    approach_kelvin=10.0,
    time_constant_seconds=120.0,
)
PARAMETERS = loop_parameters(LOOP)

flows = st.one_of(st.just(0.0), st.floats(0.01, 1.0))
heats = st.floats(0.0, 30_000.0)
warmths = st.floats(22.0, 60.0)
spans = st.floats(0.0, 1000.0)


def inputs(flow_fraction: float, loop_watts: float, supply_celsius: float = 22.0) -> ThermalInputs:
    return ThermalInputs(supply_celsius=supply_celsius, flow_fraction=flow_fraction, loop_watts=loop_watts)


def test_a_full_loop_at_full_flow_stands_one_approach_above_its_supply() -> None:
    assert predict_steady_coolant(PARAMETERS, inputs(1.0, 20_000.0)) == pytest.approx(32.0)


def test_after_one_time_constant_the_coolant_has_gone_63_percent_of_the_way() -> None:
    assert advance_coolant(PARAMETERS, 22.0, inputs(1.0, 20_000.0), 120.0) == pytest.approx(28.3212, abs=1e-3)


def test_without_flow_heat_is_stored_and_the_coolant_rises_in_a_line() -> None:
    # 20 kW into C = 120 s × 2 kW/K is a twelfth of a kelvin each second.
    assert advance_coolant(PARAMETERS, 30.0, inputs(0.0, 20_000.0), 60.0) == pytest.approx(35.0)


def test_a_loop_with_little_flow_is_nearly_a_loop_without() -> None:
    trickle = advance_coolant(PARAMETERS, 30.0, inputs(1e-6, 20_000.0), 60.0)
    assert trickle == pytest.approx(advance_coolant(PARAMETERS, 30.0, inputs(0.0, 20_000.0), 60.0), abs=0.01)


def test_less_flow_carries_less_heat_at_the_same_approach() -> None:
    left_watts = predict_capacity_watts(LOOP.capacity_watts, 0.5)
    assert predict_steady_coolant(PARAMETERS, inputs(0.5, left_watts)) == pytest.approx(32.0)


@settings(deadline=None)
@given(flows, heats, warmths, st.floats(1.0, 1000.0))
def test_heat_in_is_heat_stored_plus_heat_carried_away(
    flow_fraction: float, loop_watts: float, start_celsius: float, seconds: float
) -> None:
    drive = inputs(flow_fraction, loop_watts)
    carried_watts_per_kelvin = PARAMETERS.watts_per_kelvin * math.pow(flow_fraction, 0.8)

    def carried_watts(at: float) -> float:
        warm = advance_coolant(PARAMETERS, start_celsius, drive, at)
        return carried_watts_per_kelvin * (warm - drive.supply_celsius)

    pieces = 200  # Simpson's rule: the integral is found without the closed form that is under test
    width = seconds / pieces
    weights = [1, *([4, 2] * (pieces // 2 - 1)), 4, 1]
    carried_joules = width / 3 * sum(w * carried_watts(i * width) for i, w in enumerate(weights))
    end_celsius = advance_coolant(PARAMETERS, start_celsius, drive, seconds)
    stored_joules = PARAMETERS.joules_per_kelvin * (end_celsius - start_celsius)
    scale = max(1.0, loop_watts * seconds, abs(carried_joules))
    assert abs(loop_watts * seconds - stored_joules - carried_joules) / scale < 1e-6


@given(flows, heats, warmths, spans)
def test_a_warmer_supply_never_cools_the_coolant(
    flow_fraction: float, loop_watts: float, start_celsius: float, seconds: float
) -> None:
    cool = advance_coolant(PARAMETERS, start_celsius, inputs(flow_fraction, loop_watts, 22.0), seconds)
    warm = advance_coolant(PARAMETERS, start_celsius, inputs(flow_fraction, loop_watts, 23.0), seconds)
    assert warm >= cool - 1e-9


@given(flows, flows, heats, warmths, spans)
def test_more_flow_never_warms_a_coolant_that_is_above_its_supply(
    one: float, other: float, loop_watts: float, start_celsius: float, seconds: float
) -> None:
    less, more = sorted((one, other))
    slow = advance_coolant(PARAMETERS, start_celsius, inputs(less, loop_watts), seconds)
    fast = advance_coolant(PARAMETERS, start_celsius, inputs(more, loop_watts), seconds)
    assert fast <= slow + 1e-9


def test_a_time_scale_makes_heat_move_faster_and_changes_no_resting_point() -> None:
    quick = loop_parameters(LOOP, time_scale=20.0)
    drive = inputs(1.0, 20_000.0)
    assert advance_coolant(quick, 22.0, drive, 6.0) == pytest.approx(
        advance_coolant(PARAMETERS, 22.0, drive, 120.0)
    )
    assert predict_steady_coolant(quick, drive) == predict_steady_coolant(PARAMETERS, drive)
