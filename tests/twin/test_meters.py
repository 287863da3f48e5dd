"""Meters: what changed is told once, noise and gaps are seeded, and pressure is urgent."""

import math

import pytest

from twin.truth.sites import a_fault, a_plant, a_site, a_truth, fill, run_until
from wattline.facility import Facility, Link, TrafficClass
from wattline.state import Plant
from wattline.twin.meters import Meters, Told
from wattline.twin.truth import Truth

DAY = 86400.0


def some_meters(plant: Plant, truth: Truth, exact: bool = True, seed: int = 7) -> Meters:
    return Meters(truth, plant, seed=seed, exact=exact)


def by_meter(told: list[Told]) -> dict[tuple[str, str], float | None]:
    return {(subject, quantity): value for subject, quantity, value in told}


def test_the_first_reading_tells_everything_as_it_is() -> None:
    plant = a_plant(a_site(nodes=2))
    truth = a_truth(plant)
    told = by_meter(some_meters(plant, truth).read(0.0))
    assert set(told) == {
        ("zurich/feed-a", "supply_watts"),
        ("zurich/r1", "rack_watts"),
        ("zurich/loop", "loop_heat_watts"),
        ("zurich/loop", "coolant_celsius"),
        ("zurich/loop", "supply_celsius"),
        ("zurich/loop", "flow_fraction"),
        *(
            (f"zurich/r1-n{node}/gpu0", quantity)
            for node in (1, 2)
            for quantity in ("gpu_celsius", "gpu_watts")
        ),
    }
    assert told["zurich/r1", "rack_watts"] == truth.resource_watts(plant.resource_number["zurich/r1"])
    assert told["zurich/r1-n2/gpu0", "gpu_celsius"] == pytest.approx(truth.node_celsius(1, 0.0))


def test_what_has_not_moved_is_not_told_again() -> None:
    plant = a_plant()
    truth = a_truth(plant)
    meters = some_meters(plant, truth)
    meters.read(0.0)
    assert meters.read(10.0) == []
    truth.load("job", [(0, 8)], 1.0, 1.0, 10.0)
    told = by_meter(meters.read(10.0))
    assert told["zurich/r1-n1/gpu0", "gpu_watts"] == 700.0
    assert ("zurich/r1-n1/gpu0", "gpu_celsius") not in told  # the die has not moved yet
    assert ("zurich/r1-n2/gpu0", "gpu_watts") not in told


def test_a_node_is_looked_at_again_when_its_die_has_settled() -> None:
    plant = a_plant()
    truth = a_truth(plant)
    meters = some_meters(plant, truth)
    meters.read(0.0)
    truth.load("job", [(0, 8)], 1.0, 1.0, 300.0)
    meters.read(300.0)
    due_at = meters.next_due_at()
    assert 300.0 < due_at < 400.0
    run_until(truth, due_at)
    told = by_meter(meters.read(due_at))
    assert told["zurich/r1-n1/gpu0", "gpu_celsius"] == pytest.approx(truth.node_celsius(0, due_at))
    assert meters.next_due_at() == math.inf


def test_small_moves_are_below_the_band_and_add_up() -> None:
    plant = a_plant(a_site(nodes=4, rack_cap_watts=4e6))
    truth = a_truth(plant)
    meters = some_meters(plant, truth)
    meters.read(0.0)
    told = []
    for number in range(4):
        truth.load(f"job-{number}", [(number, 8)], 1.0, 1.0, 1.0)
        told.append(("zurich/r1", "rack_watts") in by_meter(meters.read(1.0)))
    assert told == [False] * 4  # 4 × 6 kW against a band of 40 kW
    small = a_plant(a_site(nodes=4, rack_cap_watts=1e6))
    truth = a_truth(small)
    meters = some_meters(small, truth)
    meters.read(0.0)
    told = []
    for number in range(4):
        truth.load(f"job-{number}", [(number, 8)], 1.0, 1.0, 1.0)
        told.append(("zurich/r1", "rack_watts") in by_meter(meters.read(1.0)))
    assert told == [False, True, False, True]


def test_what_is_nearly_full_is_told_at_every_look_and_is_urgent() -> None:
    plant = a_plant(a_site(nodes=4, rack_cap_watts=31_000.0, supply_celsius=20.0))
    truth = a_truth(plant)
    meters = some_meters(plant, truth)
    meters.read(0.0)
    assert meters.next_look_at(0.0) == math.inf
    keys = fill(truth, plant)
    for at in (0.0, 10.0, 20.0):
        truth.advance(at)
        assert ("zurich/r1", "rack_watts") in by_meter(meters.read(at))
        assert meters.urgent()
        assert meters.next_look_at(at) == math.inf  # it stays as it is
    truth.unload(keys[0], 20.0)
    truth.unload(keys[1], 20.0)
    meters.read(20.0)
    assert not meters.urgent()


def test_while_a_loop_is_not_calm_all_its_nodes_are_watched() -> None:
    plant = a_plant(a_site(nodes=2))
    truth = a_truth(plant, faults=[a_fault("10min", loop="loop", flow="0%")])
    meters = some_meters(plant, truth)
    fill(truth, plant, utilisation=0.8)
    for at in (0.0, 300.0, 600.0):
        run_until(truth, at)
        meters.read(at)
    seen = []
    for at in (605.0, 610.0, 615.0):
        run_until(truth, at)
        told = by_meter(meters.read(at))
        assert meters.urgent()
        seen.append((told["zurich/r1-n2/gpu0", "gpu_celsius"], truth.node_celsius(1, at)))
    assert all(said == pytest.approx(is_so) for said, is_so in seen)


def test_a_fault_is_seen_in_caps_flow_and_links() -> None:
    link = Link(
        name="wan",
        between=("north", "south"),
        bits_per_second=1e9,
        latency_seconds=0.1,
        shares=dict.fromkeys(TrafficClass, 0.25),
    )
    plant = Plant(Facility(name="two", sites=(a_site(name="north"), a_site(name="south")), links=(link,)))
    faults = [
        a_fault("10s", lasts="10s", supply="north/feed-a", rating="50%"),
        a_fault("10s", lasts="10s", loop="south/loop", flow="50%", supply_temperature="31C"),
        a_fault("10s", lasts="10s", link="wan", bandwidth="10%"),
    ]
    truth = a_truth(plant, faults=faults)
    meters = some_meters(plant, truth)
    meters.read(0.0)
    run_until(truth, 10.0)
    told = by_meter(meters.read(10.0))
    assert told["north/feed-a", "cap_watts"] == 4e6
    assert told["south/loop", "flow_fraction"] == 0.5
    assert told["south/loop", "supply_celsius"] == 31.0
    assert told["wan", "cap_bits_per_second"] == 1e8
    assert told["wan:control", "cap_bits_per_second"] == 2.5e7
    run_until(truth, 20.0)
    told = by_meter(meters.read(20.0))
    assert told["north/feed-a", "cap_watts"] == 8e6
    assert told["wan:control", "cap_bits_per_second"] == 2.5e8


def a_noisy_run(seed: int) -> list[list[Told]]:
    plant = a_plant(a_site(racks=4))
    truth = a_truth(plant, exact=False, seed=seed)
    meters = some_meters(plant, truth, exact=False, seed=seed)
    told = [meters.read(0.0)]
    for number in range(60):
        at = 600.0 * (number + 1)
        truth.load(f"job-{number}", [(number % 16, 1)], 1.0, 1.0, at)
        told.append(meters.read(at + 5.0))
    return told


def test_noise_and_gaps_repeat_with_the_seed_and_differ_without() -> None:
    assert a_noisy_run(3) == a_noisy_run(3)
    assert a_noisy_run(3) != a_noisy_run(4)


def test_a_meter_is_near_the_truth_and_never_on_it() -> None:
    plant = a_plant(a_site(racks=2))
    truth = a_truth(plant)
    told = by_meter(some_meters(plant, truth, exact=False).read(0.0))
    rack_watts = truth.resource_watts(plant.resource_number["zurich/r2"])
    assert told["zurich/r2", "rack_watts"] == pytest.approx(rack_watts, rel=0.03)
    assert told["zurich/r2", "rack_watts"] != rack_watts
    assert told["zurich/r2-n1/gpu0", "gpu_celsius"] == pytest.approx(truth.node_celsius(4, 0.0), abs=2.0)


def test_a_change_is_seen_only_after_a_few_seconds() -> None:
    plant = a_plant()
    truth = a_truth(plant)
    meters = some_meters(plant, truth, exact=False)
    meters.read(0.0)
    truth.load("job", [(0, 8)], 1.0, 1.0, 10.0)
    assert meters.read(10.0) == []
    assert meters.next_due_at() == 13.0
    truth.advance(13.0)
    assert ("zurich/r1-n1/gpu0", "gpu_watts") in by_meter(meters.read(13.0))


def test_a_meter_that_falls_silent_says_so_once_and_speaks_again() -> None:
    plant = a_plant(a_site(racks=4))
    truth = a_truth(plant)
    meters = some_meters(plant, truth, exact=False)
    silent: dict[str, float] = {}
    gaps = []
    meters.read(0.0)
    for tick in range(1, 4000):
        at = 60.0 * tick
        truth.advance(at)
        for subject, quantity, value in meters.read(at):
            if quantity not in ("rack_watts", "supply_watts", "gpu_watts", "loop_heat_watts"):
                continue
            if value is None:
                assert subject not in silent
                silent[subject] = at
            elif subject in silent:
                gaps.append(at - silent.pop(subject))
    meter_seconds = 22 * 60.0 * 4000  # 16 nodes, 4 racks, a feed and a loop
    assert gaps
    assert all(gap == pytest.approx(600.0, abs=61.0) for gap in gaps)
    assert 0.0002 < sum(gaps) / meter_seconds < 0.02


def test_exact_meters_are_never_silent() -> None:
    plant = a_plant()
    truth = a_truth(plant)
    meters = some_meters(plant, truth)
    meters.read(0.0)
    for day in range(1, 60):
        truth.advance(day * DAY)
        assert meters.read(day * DAY) == []
