"""The truth as a whole: what it refuses, what it says was touched, and that a seed decides everything."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.truth.sites import a_plant, a_site, a_truth, fill, run_until
from wattline.errors import UsageError, WattlineError
from wattline.facility import CoolingKind
from wattline.state import Plant
from wattline.twin.truth import Truth


def fingerprint(truth: Truth, plant: Plant) -> dict[str, float]:
    """What every node comes to after an hour of work, by name."""
    fill(truth, plant)
    run_until(truth, 3600.0)
    return {spot.node.name: truth.node_celsius(number, 3600.0) for number, spot in enumerate(plant.spots)}


@given(st.integers(0, 2**63))
def test_the_same_seed_is_the_same_truth_whatever_was_built_first(seed: int) -> None:
    north, south = a_site(name="north"), a_site(CoolingKind.AIR, name="south", device="A100")
    one, other = a_plant(north, south), a_plant(south, north)
    assert fingerprint(a_truth(one, exact=False, seed=seed), one) == fingerprint(
        a_truth(other, exact=False, seed=seed), other
    )


def test_another_seed_is_another_truth_and_an_exact_one_has_no_spread() -> None:
    plant = a_plant(a_site(supply_celsius=20.0))
    first, second = (fingerprint(a_truth(plant, exact=False, seed=seed), plant) for seed in (1, 2))
    assert first != second
    assert len(set(first.values())) == len(plant.spots)
    assert len(set(fingerprint(a_truth(plant), plant).values())) == 1


def test_only_what_a_start_reaches_is_touched() -> None:
    plant = a_plant(a_site(name="north", racks=2), a_site(name="south"))
    truth = a_truth(plant)
    truth.drain_touched()
    truth.load("job", [(5, 8)], 1.0, 1.0, 10.0)
    touched = truth.drain_touched()
    assert list(touched.nodes) == [5]
    names = {plant.resources[number].name for number in touched.resources}
    assert names == {"north/feed-a", "north/loop", "north/r2"}
    assert not truth.drain_touched().nodes


def test_in_calm_conditions_nothing_happens_by_itself() -> None:
    plant = a_plant(a_site(supply_celsius=20.0))
    truth = a_truth(plant)
    fill(truth, plant)
    assert truth.next_change_at() == math.inf
    assert truth.uncalm_loops() == []


def test_jobs_share_a_node_and_the_hungriest_gpu_speaks_for_it() -> None:
    plant = a_plant(a_site(nodes=1))
    truth = a_truth(plant)
    truth.load("mild", [(0, 4)], 0.2, 1.0, 0.0)
    mild_watts = truth.node_gpu_watts(0)
    truth.load("wild", [(0, 4)], 1.0, 1.0, 0.0)
    assert truth.node_gpu_watts(0) == 700.0
    truth.unload("wild", 1.0)
    assert truth.node_gpu_watts(0) == mild_watts


def test_what_cannot_be_is_refused() -> None:
    truth = a_truth(a_plant())
    truth.load("job", [(0, 6)], 1.0, 1.0, 10.0)
    with pytest.raises(UsageError, match="2 are free"):
        truth.load("other", [(0, 3)], 1.0, 1.0, 10.0)
    with pytest.raises(UsageError, match="runs already"):
        truth.load("job", [(1, 1)], 1.0, 1.0, 10.0)
    with pytest.raises(UsageError, match="utilisation"):
        truth.load("eager", [(1, 1)], 3.0, 1.0, 10.0)
    with pytest.raises(UsageError, match="does not run"):
        truth.unload("other", 10.0)
    with pytest.raises(WattlineError, match="time goes on only"):
        truth.advance(5.0)
    with pytest.raises(WattlineError, match="advance to each change"):
        truth.unload("job", 5.0)


def test_a_change_that_is_due_must_happen_before_time_goes_on() -> None:
    plant = a_plant(a_site(supply_celsius=61.0))
    truth = a_truth(plant)
    fill(truth, plant)
    with pytest.raises(WattlineError, match="advance to each change"):
        truth.unload(plant.spots[0].node.name, truth.next_change_at() + 1.0)


def test_a_job_put_on_a_node_that_is_off_is_lost_at_once() -> None:
    plant = a_plant(a_site(nodes=2, rack_cap_watts=8000.0))
    truth = a_truth(plant)
    fill(truth, plant)
    run_until(truth, 10.0)
    assert truth.is_off(0)
    truth.load("late", [(0, 8)], 1.0, 1.0, 10.0)
    assert truth.pace("late") == 0.0
    assert truth.unload("late", 20.0) == 0.0


def test_work_without_gpus_draws_nothing_of_its_own_and_is_never_too_hot() -> None:
    site = a_site(nodes=2, supply_celsius=61.0)
    rack = site.racks[0]
    plain = replace(rack.nodes[1], device=None, gpus=0)
    plant = a_plant(replace(site, racks=(replace(rack, nodes=(rack.nodes[0], plain)),)))
    truth = a_truth(plant)
    cpu_node = plant.node_number[plain.name]
    idle_watts = truth.resource_watts(plant.resource_number[rack.name])
    truth.load("cpus", [(cpu_node, 0), (1 - cpu_node, 0)], 1.0, 1.0, 0.0)
    assert truth.resource_watts(plant.resource_number[rack.name]) == idle_watts
    assert truth.node_gpu_watts(1 - cpu_node) == 72.0
    truth.load("gpus", [(1 - cpu_node, 8)], 1.0, 1.0, 0.0)
    run_until(truth, 3600.0)
    assert truth.pace("gpus") < truth.pace("cpus") == 1.0
