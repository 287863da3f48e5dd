"""Check 4: heat acts at the device's limits and lets go below them, and is not mistaken for a power cap."""

from __future__ import annotations

from typing import Any

import pytest
from bench.whole_runs import capped

from twin.truth.sites import a_fault, a_site
from twin.validation.twins import HOUR, Twin, a_setting, fill_up, watch
from wattline.facility import DEVICES, CoolingKind, Facility
from wattline.physics.cap_curve import device_cap_curve
from wattline.physics.throttle import SHUTDOWN_HYSTERESIS_KELVIN
from wattline.spec import Fault
from wattline.twin.baselines import decide_blind
from wattline.twin.run import run
from wattline.units import SECONDS_PER_HOUR

NEAR_KELVIN = 0.05
SEEDS = range(3)


def a_hall(kind: CoolingKind = CoolingKind.DIRECT_TO_CHIP, device: str = "H100", **given: Any) -> Facility:
    return Facility(name="test", sites=(a_site(kind, device=device, **given),))


def flat_out(facility: Facility, faults: list[Fault], seed: int) -> Twin:
    """Every GPU at work, and nobody who would do anything about it."""
    work = fill_up(facility)
    return watch(
        a_setting(facility, work, faults=faults, seed=seed, decide=decide_blind, until_seconds=2 * HOUR)
    )


@pytest.mark.parametrize("device", sorted(DEVICES))
@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_die_is_held_back_at_its_throttle_limit(device: str, seed: int) -> None:
    limit_celsius = DEVICES[device].throttle_celsius
    twin = flat_out(a_hall(device=device, supply_celsius=limit_celsius - 22.0), [], seed)
    first = twin.seen("pace")[0]
    assert max(first.celsius) == pytest.approx(limit_celsius, abs=NEAR_KELVIN)
    assert first.incident.keys


@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_go_off_at_the_shutdown_limit_and_come_back_well_below_it(seed: int) -> None:
    twin = flat_out(a_hall(), [a_fault("1h", lasts="10min", loop="loop", flow="0%")], seed)
    off, on = twin.seen("off"), twin.seen("on")
    limit_celsius = DEVICES["H100"].shutdown_celsius
    assert twin.truth.tally.shutdowns == sum(len(seen.incident.nodes) for seen in off) > 0
    assert sum(len(seen.incident.nodes) for seen in on) > 0
    for seen in off:
        reached = [seen.celsius[node] for node in seen.incident.nodes]
        assert reached == pytest.approx([limit_celsius] * len(reached), abs=NEAR_KELVIN)
    for seen in on:
        cooled = [seen.celsius[node] for node in seen.incident.nodes]
        back_celsius = limit_celsius - SHUTDOWN_HYSTERESIS_KELVIN
        assert cooled == pytest.approx([back_celsius] * len(cooled), abs=NEAR_KELVIN)


@pytest.mark.parametrize("seed", SEEDS)
def test_speed_is_lost_at_the_limit_and_given_back_below_it(seed: int) -> None:
    """A short stop of a tank's pump: long enough to throttle, too short to shut anything down."""
    facility = a_hall(CoolingKind.IMMERSION, nodes=1, supply_celsius=38.0)
    twin = flat_out(facility, [a_fault("1h", lasts="5min", loop="loop", flow="0%")], seed)
    paces = twin.seen("pace")
    limit_celsius = DEVICES["H100"].throttle_celsius
    assert max(paces[0].celsius) == pytest.approx(limit_celsius, abs=NEAR_KELVIN)
    assert max(paces[-1].celsius) < limit_celsius - 0.9
    assert twin.truth.pace("job-0/train") == 1.0
    assert twin.truth.tally.shutdowns == 0


def test_heat_and_power_are_told_apart() -> None:
    hot = flat_out(a_hall(), [a_fault("1h", lasts="60s", loop="loop", flow="0%")], 1).truth.tally
    assert hot.heat_throttle_gpu_seconds > 0.0 == hot.power_throttle_gpu_seconds
    facility = a_hall(supply_celsius=20.0)
    work = fill_up(facility, hours=1.0)
    report = run(a_setting(facility, work, exact=True, decide=capped(0.6))).report
    device = DEVICES["H100"]
    speed = device_cap_curve(device.idle_watts).predict(0.6 * device.limit_watts, device.limit_watts)
    assert report.throttle_gpu_seconds / SECONDS_PER_HOUR == pytest.approx(32.0 / speed)
    cool = watch(a_setting(facility, work, exact=True, decide=capped(0.6))).truth.tally
    assert cool.power_throttle_gpu_seconds > 0.0 == cool.heat_throttle_gpu_seconds


def test_a_brownout_is_answered_with_caps_and_counts_as_power() -> None:
    facility = a_hall(supply_celsius=20.0, feeds_watts=(45_000.0,))
    brownout = [a_fault("1h", lasts="20min", supply="feed-a", rating="50%")]
    work = fill_up(facility, hours=2.0)
    told = watch(a_setting(facility, work, faults=brownout, until_seconds=2 * HOUR)).truth.tally
    assert told.power_throttle_gpu_seconds > 0.0 == told.heat_throttle_gpu_seconds
    assert told.trips == 0


def test_a_cool_hall_with_power_to_spare_holds_nobody_back() -> None:
    facility = a_hall(supply_celsius=20.0)
    report = run(a_setting(facility, fill_up(facility, hours=1.0), decide=decide_blind)).report
    assert report.jobs.completed == 4
    assert report.throttle_gpu_seconds == report.shutdowns == report.lost_gpu_hours.throttle == 0
    assert report.useful_gpu_hours == pytest.approx(32.0)
