"""Temperatures: the closed form agrees with the physics room, and with itself however time is cut."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.truth.sites import a_fault, a_plant, a_site, a_truth, fill, run_until
from wattline.facility import CoolingKind
from wattline.physics import (
    ThermalInputs,
    advance,
    predict_gpu_watts,
    predict_steady,
    thermal_parameters,
)
from wattline.state import Plant
from wattline.twin.truth import Truth

KINDS = pytest.mark.parametrize("kind", list(CoolingKind))


def inputs_now(truth: Truth, plant: Plant) -> ThermalInputs:
    loop = plant.spots[0].loop_resource
    return ThermalInputs(
        supply_celsius=truth.supply_celsius(loop),
        flow_fraction=truth.flow_fraction(loop),
        loop_watts=truth.resource_watts(loop),
        device_watts=truth.node_gpu_watts(0),
    )


@KINDS
def test_one_device_is_as_hot_as_the_physics_says_through_every_change(kind: CoolingKind) -> None:
    plant = a_plant(a_site(kind, nodes=1, supply_celsius=20.0))
    spot = plant.spots[0]
    assert spot.node.device is not None
    parameters = thermal_parameters(spot.node.device, spot.loop)
    faults = [
        a_fault("100s", lasts="60s", loop="loop", flow="30%"),
        a_fault("200s", lasts="20s", loop="loop", flow="0%"),
        a_fault("300s", loop="loop", supply_temperature="25C"),
    ]
    truth = a_truth(plant, faults=faults)
    state = predict_steady(parameters, inputs_now(truth, plant))
    moves: dict[float, Callable[[float], object]] = {
        10.0: lambda at: truth.load("a", [(0, 4)], 0.6, 1.0, at),
        40.0: lambda at: truth.load("b", [(0, 4)], 0.4, 0.5, at),
        70.0: lambda at: truth.change("a", at, cap_fraction=0.4),
        250.0: lambda at: truth.unload("a", at),
    }
    before = 0.0
    for at in sorted([*moves, 5.0, 55.0, 100.0, 130.0, 160.0, 200.0, 211.0, 220.0, 300.0, 400.0]):
        state = advance(parameters, state, inputs_now(truth, plant), at - before)
        assert not [told for told in run_until(truth, at) if told.kind == "pace"]
        if at in moves:
            moves[at](at)
        assert truth.node_celsius(0, at) == pytest.approx(state.die_celsius, abs=1e-6)
        assert truth.coolant_celsius(spot.loop_resource, at) == pytest.approx(state.coolant_celsius, abs=1e-6)
        before = at


@KINDS
def test_a_step_of_power_answers_as_two_lags_in_a_row_do(kind: CoolingKind) -> None:
    plant = a_plant(a_site(kind, nodes=1, supply_celsius=15.0))
    truth, spot = a_truth(plant), plant.spots[0]
    loop = spot.loop_resource
    rest, idle_watts, idle_loop_watts = (
        truth.node_celsius(0, 0.0),
        truth.node_gpu_watts(0),
        truth.resource_watts(loop),
    )
    truth.load("a", [(0, 8)], 0.7, 1.0, 0.0)
    slow = spot.loop.time_constant_seconds
    fast = {
        CoolingKind.AIR: 45.0,
        CoolingKind.REAR_DOOR: 45.0,
        CoolingKind.DIRECT_TO_CHIP: 10.0,
        CoolingKind.IMMERSION: 20.0,
    }[kind]
    assert spot.node.device is not None
    resistance = thermal_parameters(spot.node.device, spot.loop).kelvin_per_watt
    own = resistance * (truth.node_gpu_watts(0) - idle_watts)
    shared = (
        (truth.resource_watts(loop) - idle_loop_watts) * spot.loop.approach_kelvin / spot.loop.capacity_watts
    )
    for at in (1.0, 10.0, 30.0, 60.0, 300.0, 3000.0):
        if slow == fast:
            lagged = 1.0 - (1.0 + at / slow) * math.exp(-at / slow)
        else:
            lagged = 1.0 - (slow * math.exp(-at / slow) - fast * math.exp(-at / fast)) / (slow - fast)
        expected = rest + own * (1.0 - math.exp(-at / fast)) + shared * lagged
        assert truth.node_celsius(0, at) == pytest.approx(expected, abs=0.1)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from(list(CoolingKind)),
    st.lists(st.floats(1.0, 900.0), min_size=1, max_size=10),
    st.integers(0, 2**31),
)
def test_temperatures_do_not_depend_on_where_time_is_cut(
    kind: CoolingKind, cuts: list[float], seed: int
) -> None:
    plant = a_plant(a_site(kind, racks=3, nodes=2))
    faults = [a_fault("300s", lasts="200s", loop="loop", flow="20%")]
    whole, cut = (a_truth(plant, exact=False, seed=seed, faults=faults) for _ in range(2))
    for truth in (whole, cut):
        truth.load("a", [(0, 8), (2, 3)], 1.0, 1.0, 0.0)
    for at in sorted(cuts):
        run_until(cut, at)
        cut.change("a", at)  # touches everything the job stands on and changes nothing
    for truth in (whole, cut):
        run_until(truth, 1000.0)
    for node in range(len(plant.spots)):
        assert cut.node_celsius(node, 1000.0) == pytest.approx(whole.node_celsius(node, 1000.0), abs=1e-6)
    assert cut.pace("a") == whole.pace("a")


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(list(CoolingKind)), st.integers(0, 2**31), st.floats(0.0, 1.1))
def test_warmer_supply_never_cools_a_die(kind: CoolingKind, seed: int, utilisation: float) -> None:
    cool, warm = (a_plant(a_site(kind, racks=2, nodes=2, supply_celsius=celsius)) for celsius in (20.0, 21.0))
    truths = [a_truth(plant, exact=False, seed=seed) for plant in (cool, warm)]
    for truth in truths:
        fill(truth, cool, utilisation=utilisation)
    for at in (1.0, 20.0, 100.0, 1000.0):
        for truth in truths:
            run_until(truth, at)
        for node in range(len(cool.spots)):
            assert truths[1].node_celsius(node, at) >= truths[0].node_celsius(node, at)


def test_in_air_a_rack_beside_busy_ones_is_warmer_and_in_liquid_it_is_not() -> None:
    for kind, warmer in ((CoolingKind.AIR, True), (CoolingKind.DIRECT_TO_CHIP, False)):
        plant = a_plant(a_site(kind, racks=4, nodes=1, supply_celsius=15.0))
        truth = a_truth(plant)
        truth.load("beside", [(0, 8)], 1.0, 1.0, 0.0)
        run_until(truth, 3600.0)
        beside, away = truth.node_celsius(1, 3600.0), truth.node_celsius(3, 3600.0)
        assert (beside > away + 0.5) is warmer


def test_a_cap_below_what_is_wanted_is_what_is_drawn() -> None:
    plant = a_plant()
    truth, device = a_truth(plant), plant.spots[0].node.device
    assert device is not None
    truth.load("a", [(0, 8)], 0.9, 0.5, 0.0)
    assert truth.node_gpu_watts(0) == predict_gpu_watts(device, 0.9, 0.5) == 350.0
    truth.change("a", 0.0, cap_fraction=1.0, utilisation=1.1)
    assert device.limit_watts < truth.node_gpu_watts(0) <= 1.1 * device.limit_watts
