from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.calibrate.synthesis import Truth
from wattline.physics import ThermalInputs, ThermalState, advance
from wattline.twin.calibrate.response import Hold, build_response
from wattline.twin.calibrate.series import Series


@given(
    spans=st.lists(st.floats(0.01, 50.0), min_size=3, max_size=30),
    flow=st.floats(0.1, 1.0),
    seed=st.integers(0, 100),
)
def test_what_follows_steps_is_what_physics_says_however_readings_are_spaced(
    spans: list[float], flow: float, seed: int
) -> None:
    parameters = Truth().parameters
    generator = np.random.default_rng(seed)
    at = np.cumsum([0.0, *spans])
    watts = generator.uniform(70.0, 400.0, len(at))
    resistance = parameters.resistance(flow)
    state = ThermalState(coolant_celsius=22.0, die_celsius=22.0 + resistance * watts[0])
    celsius = [state.die_celsius]
    for span, drawn in zip(spans, watts[:-1].tolist(), strict=True):
        inputs = ThermalInputs(supply_celsius=22.0, flow_fraction=flow, loop_watts=0.0, device_watts=drawn)
        state = advance(parameters, state, inputs, span)
        celsius.append(state.die_celsius)
    pace = Series(at, np.full(len(at), parameters.kelvin_per_watt / resistance))
    response = build_response(
        Series(at, np.array(celsius)),
        Series(at, np.full(len(at), 22.0)),
        Series(at, watts),
        pace=pace,
        scale=1.0,
    )
    assert response is not None
    nominal_seconds = parameters.kelvin_per_watt * parameters.joules_per_kelvin
    base, drive = response.follow(nominal_seconds, Hold.AS_LAST_SAID)
    assert base + parameters.kelvin_per_watt * drive == pytest.approx(np.array(celsius), abs=1e-9)


def test_a_ramp_is_followed_exactly() -> None:
    at = np.array([0.0, 1.0, 7.0, 30.0])
    flat = Series(at, np.zeros(4))
    response = build_response(flat, flat, Series(at, 2.0 * at), pace=None, scale=1.0)
    assert response is not None
    _, drive = response.follow(10.0, Hold.STRAIGHT)
    assert drive == pytest.approx(2.0 * (at - 10.0 * (1.0 - np.exp(-at / 10.0))))


def test_after_a_gap_nothing_is_carried_over() -> None:
    at = np.array([*range(100), *range(1000, 1100)], dtype=np.float64)
    watts = Series(at, np.where(at < 500, 100.0, 400.0))
    flat = Series(at, np.zeros(200))
    response = build_response(flat, flat, watts, pace=None, scale=1.0)
    assert response is not None
    assert response.segments == 2
    _, drive = response.follow(50.0, Hold.STRAIGHT)
    assert drive == pytest.approx(watts.values)


def test_meters_that_never_speak_together_give_nothing() -> None:
    early = Series(np.arange(10.0), np.zeros(10))
    late = Series(np.arange(100.0, 110.0), np.zeros(10))
    assert build_response(early, late, early, pace=None, scale=1.0) is None
