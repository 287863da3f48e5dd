"""Throttle, slowdown and shutdown: at the device's limits, with hysteresis, told apart from power caps."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.truth.sites import a_fault, a_plant, a_site, a_truth, fill, run_until
from wattline.facility import DEVICES, CoolingKind
from wattline.physics import LimitedBy
from wattline.physics.cap_curve import device_cap_curve
from wattline.state import Plant
from wattline.twin.truth import Incident, IncidentKind, Truth

LIMITS_KELVIN = 0.05


def first(told: list[Incident], kind: IncidentKind) -> Incident:
    return next(incident for incident in told if incident.kind is kind)


def seconds_to_throttle(kind: CoolingKind, device: str, supply_celsius: float) -> float:
    plant = a_plant(a_site(kind, device=device, supply_celsius=supply_celsius))
    truth = a_truth(plant, faults=[a_fault("1h", loop="loop", flow="0%")])
    fill(truth, plant)
    return first(run_until(truth, 7200.0), IncidentKind.PACE).at - 3600.0


def a_hot_node(kind: CoolingKind, supply_celsius: float, device: str = "H100") -> tuple[Truth, Plant]:
    plant = a_plant(a_site(kind, nodes=1, device=device, supply_celsius=supply_celsius))
    truth = a_truth(plant)
    truth.load("hot", [(0, 8)], 1.0, 1.0, 0.0)
    return truth, plant


def test_a_stopped_pump_throttles_cold_plates_within_a_minute_and_tanks_ride_longer() -> None:
    cold_plates = seconds_to_throttle(CoolingKind.DIRECT_TO_CHIP, "H100", 30.0)
    tanks = seconds_to_throttle(CoolingKind.IMMERSION, "H200", 38.0)
    assert cold_plates < 60.0 < tanks


@pytest.mark.parametrize("device", sorted(DEVICES))
def test_a_die_is_held_back_when_it_reaches_its_throttle_limit_and_not_before(device: str) -> None:
    limit = DEVICES[device].throttle_celsius
    truth, _ = a_hot_node(CoolingKind.DIRECT_TO_CHIP, supply_celsius=limit - 22.0, device=device)
    at = truth.next_change_at()
    assert truth.node_celsius(0, at - 0.01) < limit
    told = truth.advance(at)
    assert truth.node_celsius(0, at) == pytest.approx(limit, abs=LIMITS_KELVIN)
    assert [(incident.kind, incident.keys) for incident in told] == [(IncidentKind.PACE, ("hot",))]
    assert truth.pace("hot") < 1.0
    assert truth.limited_by("hot") is LimitedBy.HEAT


def test_a_node_held_back_by_heat_settles_between_its_limits_and_causes_no_more_events() -> None:
    truth, plant = a_hot_node(CoolingKind.DIRECT_TO_CHIP, supply_celsius=61.0)
    run_until(truth, 3600.0)
    device = plant.spots[0].node.device
    assert device is not None
    assert truth.next_change_at() == math.inf
    assert 0.5 < truth.pace("hot") < 1.0
    assert truth.node_celsius(0, 3600.0) < device.slowdown_celsius
    assert truth.node_gpu_watts(0) < device.limit_watts


def test_speed_comes_back_only_when_the_die_is_clearly_cooler() -> None:
    faults = [a_fault("10min", lasts="2min", loop="loop", flow="0%")]
    plant = a_plant(a_site(CoolingKind.IMMERSION, nodes=1, device="H200", supply_celsius=38.0))
    truth = a_truth(plant, faults=faults)
    truth.load("job", [(0, 8)], 1.0, 1.0, 0.0)
    paces, celsius = [], []
    while (at := truth.next_change_at()) < math.inf:
        if any(incident.kind is IncidentKind.PACE for incident in truth.advance(at)):
            paces.append(truth.pace("job"))
            celsius.append(truth.node_celsius(0, at))
    assert paces[0] < 1.0
    assert paces[-1] == 1.0
    assert celsius[0] == pytest.approx(DEVICES["H200"].throttle_celsius, abs=LIMITS_KELVIN)
    assert celsius[-1] < DEVICES["H200"].throttle_celsius - 0.9


def test_at_the_shutdown_limit_a_node_goes_off_with_what_runs_there_and_comes_back_when_cool() -> None:
    plant = a_plant(a_site(nodes=2))
    truth = a_truth(plant, faults=[a_fault("1h", lasts="10min", loop="loop", flow="0%")])
    truth.load("lost", [(0, 8)], 1.0, 1.0, 0.0)
    truth.load("lives", [(1, 8)], 0.1, 1.0, 0.0)
    told: list[Incident] = []
    while not any(incident.kind is IncidentKind.OFF for incident in told):
        told += truth.advance(truth.next_change_at())
    off = first(told, IncidentKind.OFF)
    shutdown_celsius = DEVICES["H100"].shutdown_celsius
    assert (off.keys, off.nodes) == (("lost",), (0,))
    assert truth.node_celsius(0, off.at) == pytest.approx(shutdown_celsius, abs=LIMITS_KELVIN)
    assert truth.pace("lost") == 0.0
    assert truth.node_gpu_watts(0) == 0.0
    assert truth.is_off(0)
    truth.unload("lost", off.at)
    on = first(run_until(truth, 7200.0), IncidentKind.ON)
    assert on.nodes == (0,)
    assert not truth.is_off(0)
    assert truth.tally.shutdowns >= 1
    truth.load("again", [(0, 8)], 1.0, 1.0, 7200.0)
    assert truth.pace("again") == 1.0


def test_a_node_that_was_too_hot_comes_back_ten_kelvin_below_the_limit() -> None:
    plant = a_plant(a_site(nodes=1))
    truth = a_truth(plant, faults=[a_fault("1h", loop="loop", flow="0%")])
    truth.load("lost", [(0, 8)], 1.0, 1.0, 0.0)
    while True:
        at = truth.next_change_at()
        told = truth.advance(at)
        if any(incident.kind is IncidentKind.ON for incident in told):
            break
    back_celsius = DEVICES["H100"].shutdown_celsius - 10.0
    assert truth.node_celsius(0, at) == pytest.approx(back_celsius, abs=LIMITS_KELVIN)


def test_a_job_is_as_slow_as_its_slowest_node() -> None:
    plant = a_plant(a_site(name="cool", supply_celsius=20.0), a_site(name="warm", supply_celsius=61.0))
    truth = a_truth(plant)
    truth.load("cool", [(0, 8)], 1.0, 1.0, 0.0)
    truth.load("warm", [(4, 8), (5, 1)], 1.0, 1.0, 0.0)
    run_until(truth, 3600.0)
    assert truth.pace("cool") == 1.0
    assert truth.pace("warm") < 1.0


def test_a_cap_and_heat_are_told_apart_and_the_lower_speed_counts() -> None:
    truth, _ = a_hot_node(CoolingKind.DIRECT_TO_CHIP, supply_celsius=20.0)
    assert truth.limited_by("hot") is LimitedBy.NONE
    truth.change("hot", 0.0, cap_fraction=0.7)
    assert truth.limited_by("hot") is LimitedBy.POWER
    device = DEVICES["H100"]
    curve = device_cap_curve(device.idle_watts)
    assert truth.pace("hot") == pytest.approx(curve.predict(0.7 * device.limit_watts, device.limit_watts))
    warm, _ = a_hot_node(CoolingKind.DIRECT_TO_CHIP, supply_celsius=64.0)
    run_until(warm, 3600.0)
    warm.change("hot", 3600.0, cap_fraction=0.99)
    assert warm.limited_by("hot") is LimitedBy.HEAT


def test_a_cap_above_what_a_job_wants_does_not_slow_it() -> None:
    truth, _ = a_hot_node(CoolingKind.DIRECT_TO_CHIP, supply_celsius=20.0)
    truth.change("hot", 0.0, utilisation=0.3, cap_fraction=0.6)
    assert truth.pace("hot") == 1.0
    assert truth.limited_by("hot") is LimitedBy.NONE


def test_throttled_gpu_seconds_are_counted_by_cause() -> None:
    truth, _ = a_hot_node(CoolingKind.DIRECT_TO_CHIP, supply_celsius=20.0)
    truth.change("hot", 100.0, cap_fraction=0.5)
    truth.change("hot", 160.0, cap_fraction=1.0)
    truth.advance(300.0)
    assert truth.tally.power_throttle_gpu_seconds == pytest.approx(8 * 60.0)
    assert truth.tally.heat_throttle_gpu_seconds == 0.0


@settings(max_examples=25, deadline=None)
@given(st.floats(0.3, 0.99), st.floats(0.0, 0.3), st.floats(0.2, 1.1), st.integers(0, 2**31))
def test_loosening_a_cap_never_raises_seconds_throttled_by_power(
    cap: float, looser: float, utilisation: float, seed: int
) -> None:
    throttled = []
    for fraction in (cap, min(1.0, cap + looser)):
        plant = a_plant(a_site(nodes=2, supply_celsius=20.0))
        truth = a_truth(plant, exact=False, seed=seed)
        truth.load("job", [(0, 8), (1, 4)], utilisation, fraction, 0.0)
        run_until(truth, 1000.0)
        throttled.append((truth.tally.power_throttle_gpu_seconds, -truth.pace("job")))
    assert throttled[1] <= throttled[0]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.0, 400.0), st.integers(0, 7), st.floats(0.2, 1.1)), min_size=1, max_size=12
    ),
    st.sampled_from(["0%", "10%", "40%"]),
    st.integers(0, 2**31),
)
def test_no_die_passes_a_limit_without_an_incident(
    starts: list[tuple[float, int, float]], flow: str, seed: int
) -> None:
    """What the calm test and the search for crossings leave out must truly be out of reach."""
    plant = a_plant(a_site(CoolingKind.AIR, device="A100", racks=4, nodes=2, supply_celsius=33.0))
    truth = a_truth(
        plant, exact=False, seed=seed, faults=[a_fault("200s", lasts="90s", loop="loop", flow=flow)]
    )
    device = DEVICES["A100"]
    pending = sorted(starts)
    held: dict[int, str] = {}
    for at in (0.5 * tick for tick in range(1400)):
        run_until(truth, at)
        while pending and pending[0][0] <= at:
            _, node, utilisation = pending.pop(0)
            if node in held:
                truth.unload(held.pop(node), at)
            else:
                held[node] = f"{node}/{at}/{utilisation}"
                truth.load(held[node], [(node, 8)], utilisation, 1.0, at)
        for node, key in held.items():
            if not truth.is_off(node) and truth.pace(key) == 1.0:
                assert truth.node_celsius(node, at) < device.throttle_celsius + LIMITS_KELVIN
            if not truth.is_off(node):
                assert truth.node_celsius(node, at) < device.shutdown_celsius + LIMITS_KELVIN
