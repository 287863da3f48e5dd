"""Crossing: the predicted moment is the first at which the die is there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline.facility import DEVICES, CoolingKind, Loop
from wattline.physics import (
    ThermalInputs,
    ThermalParameters,
    ThermalState,
    advance,
    predict_seconds_to,
    predict_steady,
    thermal_parameters,
)


def parameters_of(
    device: str = "H100", kind: CoolingKind = CoolingKind.DIRECT_TO_CHIP, time_constant_seconds: float = 60.0
) -> ThermalParameters:
    loop = Loop(
        name="loop",
        kind=kind,
        capacity_watts=130_000.0,
        supply_celsius=30.0,
        approach_kelvin=10.0,
        time_constant_seconds=time_constant_seconds,
    )
    return thermal_parameters(DEVICES[device], loop)


def full_load(flow_fraction: float = 1.0) -> ThermalInputs:
    return ThermalInputs(
        supply_celsius=30.0, flow_fraction=flow_fraction, loop_watts=120_000.0, device_watts=700.0
    )


parameter_sets = st.builds(
    parameters_of, st.sampled_from(sorted(DEVICES)), st.sampled_from(CoolingKind), st.floats(5.0, 900.0)
)
states = st.builds(ThermalState, coolant_celsius=st.floats(10.0, 90.0), die_celsius=st.floats(10.0, 95.0))
drives = st.builds(
    ThermalInputs,
    supply_celsius=st.floats(10.0, 45.0),
    flow_fraction=st.one_of(st.just(0.0), st.floats(0.01, 1.0)),
    loop_watts=st.floats(0.0, 200_000.0),
    device_watts=st.floats(0.0, 1000.0),
)


@settings(deadline=None)
@given(parameter_sets, states, drives, st.floats(20.0, 110.0))
def test_the_die_is_there_at_the_predicted_moment_and_not_before(
    parameters: ThermalParameters, state: ThermalState, drive: ThermalInputs, celsius: float
) -> None:
    seconds = predict_seconds_to(celsius, parameters, state, drive)
    horizon = 20_000.0 if seconds is None else seconds * (1 - 1e-6)
    for part in range(200):
        die_celsius = advance(parameters, state, drive, horizon * part / 199).die_celsius
        assert die_celsius < celsius + 1e-6 or seconds == 0.0
    if seconds is not None:
        assert advance(parameters, state, drive, seconds).die_celsius >= celsius


def test_a_die_that_is_already_there_needs_no_time() -> None:
    hot = ThermalState(coolant_celsius=40.0, die_celsius=90.0)
    assert predict_seconds_to(87.0, parameters_of(), hot, full_load()) == 0.0


def test_a_die_that_rests_below_never_gets_there() -> None:
    rest = predict_steady(parameters_of(), full_load())
    assert predict_seconds_to(rest.die_celsius + 0.1, parameters_of(), rest, full_load()) is None


def test_a_die_that_passes_the_mark_on_its_way_down_again_is_seen() -> None:
    # Hot coolant under a busy die that will rest far lower: the die first rises, then falls.
    parameters = parameters_of(time_constant_seconds=300.0)
    start = ThermalState(coolant_celsius=75.0, die_celsius=75.0)
    drive = replace(full_load(), loop_watts=10_000.0)
    assert predict_steady(parameters, drive).die_celsius < 80.0
    seconds = predict_seconds_to(85.0, parameters, start, drive)
    assert seconds is not None
    assert advance(parameters, start, drive, seconds).die_celsius == pytest.approx(85.0, abs=1e-6)


def test_a_stopped_pump_throttles_direct_to_chip_within_a_minute_and_immersion_rides_longer() -> None:
    throttle_celsius = DEVICES["H100"].throttle_celsius

    def seconds_to_throttle(parameters: ThermalParameters) -> float:
        rest = predict_steady(parameters, full_load())
        seconds = predict_seconds_to(throttle_celsius, parameters, rest, full_load(flow_fraction=0.0))
        assert seconds is not None
        return seconds

    plate = seconds_to_throttle(parameters_of(kind=CoolingKind.DIRECT_TO_CHIP))
    tank = seconds_to_throttle(parameters_of(kind=CoolingKind.IMMERSION, time_constant_seconds=600.0))
    assert plate < 60.0 < tank


def test_a_stopped_loop_without_heat_is_judged_by_where_its_die_ends() -> None:
    start = ThermalState(coolant_celsius=40.0, die_celsius=50.0)
    idle = ThermalInputs(supply_celsius=30.0, flow_fraction=0.0, loop_watts=0.0, device_watts=0.0)
    assert predict_seconds_to(60.0, parameters_of(), start, idle) is None
