"""Heat: the cascade's closed form equals fine integration, however its span is cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.facility import DEVICES, CoolingKind, Loop
from wattline.physics import (
    LoopParameters,
    ThermalInputs,
    ThermalParameters,
    ThermalState,
    advance,
    predict_steady,
    thermal_parameters,
)

A100, H100 = DEVICES["A100"], DEVICES["H100"]


def a_loop(kind: CoolingKind, time_constant_seconds: float = 120.0) -> Loop:
    return Loop(
        name="loop",
        kind=kind,
        capacity_watts=20_000.0,
        supply_celsius=22.0,
        approach_kelvin=10.0,
        time_constant_seconds=time_constant_seconds,
    )


loops = st.builds(a_loop, st.sampled_from(CoolingKind), st.floats(5.0, 900.0))
parameter_sets = st.builds(thermal_parameters, st.sampled_from(list(DEVICES.values())), loops)
flows = st.one_of(st.just(0.0), st.floats(0.01, 1.0))
drives = st.builds(
    ThermalInputs,
    supply_celsius=st.floats(10.0, 45.0),
    flow_fraction=flows,
    loop_watts=st.floats(0.0, 30_000.0),
    device_watts=st.floats(0.0, 1000.0),
)
states = st.builds(ThermalState, coolant_celsius=st.floats(10.0, 70.0), die_celsius=st.floats(10.0, 100.0))


def integrate(
    parameters: ThermalParameters, state: ThermalState, inputs: ThermalInputs, seconds: float
) -> ThermalState:
    """The same differential equations by the classic Runge-Kutta method in small steps."""
    carried = parameters.loop.watts_per_kelvin * inputs.flow_fraction**0.8
    resistance = parameters.resistance(inputs.flow_fraction)

    def slopes(coolant: float, die: float) -> tuple[float, float]:
        coolant_watts = inputs.loop_watts - carried * (coolant - inputs.supply_celsius)
        die_watts = inputs.device_watts - (die - coolant) / resistance
        return coolant_watts / parameters.loop.joules_per_kelvin, die_watts / parameters.joules_per_kelvin

    steps = 2000
    dt = seconds / steps
    coolant, die = state.coolant_celsius, state.die_celsius
    for _ in range(steps):
        a = slopes(coolant, die)
        b = slopes(coolant + dt / 2 * a[0], die + dt / 2 * a[1])
        c = slopes(coolant + dt / 2 * b[0], die + dt / 2 * b[1])
        d = slopes(coolant + dt * c[0], die + dt * c[1])
        coolant += dt / 6 * (a[0] + 2 * b[0] + 2 * c[0] + d[0])
        die += dt / 6 * (a[1] + 2 * b[1] + 2 * c[1] + d[1])
    return ThermalState(coolant_celsius=coolant, die_celsius=die)


@pytest.mark.parametrize("flow_fraction", [1.0, 0.2, 0.0])
@pytest.mark.parametrize("kind", list(CoolingKind))
def test_a_step_in_power_follows_fine_integration(kind: CoolingKind, flow_fraction: float) -> None:
    parameters = thermal_parameters(H100, a_loop(kind))
    drive = ThermalInputs(
        supply_celsius=25.0, flow_fraction=flow_fraction, loop_watts=15_000.0, device_watts=700.0
    )
    start = ThermalState(coolant_celsius=26.0, die_celsius=31.0)
    for seconds in (3.0, 30.0, 300.0):
        exact, numeric = (
            advance(parameters, start, drive, seconds),
            integrate(parameters, start, drive, seconds),
        )
        assert exact.die_celsius == pytest.approx(numeric.die_celsius, abs=1e-3)
        assert exact.coolant_celsius == pytest.approx(numeric.coolant_celsius, abs=1e-3)


def test_equal_time_constants_are_no_special_case() -> None:
    loop = LoopParameters(watts_per_kelvin=2000.0, joules_per_kelvin=90_000.0)
    equal = ThermalParameters(
        loop=loop, kelvin_per_watt=0.1, joules_per_kelvin=450.0, flow_dependent_fraction=0.3
    )
    nearly = replace(equal, joules_per_kelvin=450.0 * (1 + 1e-9))
    start = ThermalState(coolant_celsius=22.0, die_celsius=22.0)
    drive = ThermalInputs(supply_celsius=22.0, flow_fraction=1.0, loop_watts=20_000.0, device_watts=400.0)
    die_celsius = advance(equal, start, drive, 60.0).die_celsius
    assert die_celsius == pytest.approx(integrate(equal, start, drive, 60.0).die_celsius, abs=1e-6)
    assert die_celsius == pytest.approx(advance(nearly, start, drive, 60.0).die_celsius, abs=1e-6)


@given(parameter_sets, states, drives, st.lists(st.floats(0.0, 120.0), min_size=1, max_size=8))
def test_the_result_does_not_depend_on_how_the_span_is_cut(
    parameters: ThermalParameters, start: ThermalState, drive: ThermalInputs, pieces: list[float]
) -> None:
    cut = start
    for seconds in pieces:
        cut = advance(parameters, cut, drive, seconds)
    whole = advance(parameters, start, drive, sum(pieces))
    assert cut.die_celsius == pytest.approx(whole.die_celsius, rel=1e-9)
    assert cut.coolant_celsius == pytest.approx(whole.coolant_celsius, rel=1e-9)


@given(parameter_sets, states, drives, st.floats(0.0, 1000.0))
def test_a_warmer_supply_never_cools_a_die(
    parameters: ThermalParameters, start: ThermalState, drive: ThermalInputs, seconds: float
) -> None:
    warmer = replace(drive, supply_celsius=drive.supply_celsius + 1.0)
    cool, warm = advance(parameters, start, drive, seconds), advance(parameters, start, warmer, seconds)
    assert warm.die_celsius >= cool.die_celsius - 1e-9


@given(parameter_sets, drives, st.floats(0.01, 1.0), flows, st.floats(0.0, 1000.0))
def test_less_flow_never_cools_a_die_that_was_at_rest(
    parameters: ThermalParameters, drive: ThermalInputs, one: float, other: float, seconds: float
) -> None:
    less, more = min(one, other), max(one, other)
    rest = predict_steady(parameters, replace(drive, flow_fraction=more))
    later = advance(parameters, rest, replace(drive, flow_fraction=less), seconds)
    assert later.die_celsius >= rest.die_celsius - 1e-9


@given(parameter_sets, states, st.floats(0.01, 1.0), drives)
def test_every_start_comes_to_rest_at_the_same_place(
    parameters: ThermalParameters, start: ThermalState, flow_fraction: float, drive: ThermalInputs
) -> None:
    drive = replace(drive, flow_fraction=flow_fraction)
    end, rest = advance(parameters, start, drive, 1e7), predict_steady(parameters, drive)
    assert end.die_celsius == pytest.approx(rest.die_celsius, rel=1e-9)
    assert end.coolant_celsius == pytest.approx(rest.coolant_celsius, rel=1e-9)


def test_a_busy_a100_in_air_rests_near_the_measured_temperatures() -> None:
    parameters = thermal_parameters(A100, a_loop(CoolingKind.AIR))
    drive = ThermalInputs(supply_celsius=22.0, flow_fraction=1.0, loop_watts=10_000.0, device_watts=400.0)
    assert predict_steady(parameters, drive).die_celsius == pytest.approx(67.0)


def test_liquid_reaches_the_die_with_less_resistance_than_air() -> None:
    resistances = {kind: thermal_parameters(A100, a_loop(kind)).kelvin_per_watt for kind in CoolingKind}
    assert resistances[CoolingKind.AIR] == resistances[CoolingKind.REAR_DOOR] == A100.kelvin_per_watt_air
    assert resistances[CoolingKind.DIRECT_TO_CHIP] == A100.kelvin_per_watt_liquid
    assert resistances[CoolingKind.IMMERSION] == A100.kelvin_per_watt_liquid
