"""Breakers and feeds: who carries what, what trips and what goes dark."""

import pytest

from twin.truth.sites import a_fault, a_plant, a_site, a_truth, fill, run_until
from wattline.physics.cap_curve import OwnCurve
from wattline.twin.truth import IncidentKind, Truth
from wattline.twin.truth.breaker import RESET_SECONDS

AB = (1e6, 1e6)
NODE_WATTS = 8 * 700.0 + 2000.0


def test_a_and_b_carry_alike_and_together_what_their_racks_draw() -> None:
    plant = a_plant(a_site(racks=2, feeds_watts=AB))
    truth = a_truth(plant)
    fill(truth, plant)
    a, b = (truth.resource_watts(plant.resource_number[f"zurich/feed-{side}"]) for side in "ab")
    racks = [truth.resource_watts(plant.resource_number[f"zurich/r{rack}"]) for rack in (1, 2)]
    assert a == b == pytest.approx(sum(racks) / 2)
    assert racks[0] == pytest.approx(4 * NODE_WATTS)
    assert truth.resource_watts(plant.spots[0].loop_resource) == pytest.approx(sum(racks))


def test_a_lost_feed_moves_its_load_to_the_other_side_and_back() -> None:
    plant = a_plant(a_site(feeds_watts=AB))
    truth = a_truth(plant, faults=[a_fault("60s", lasts="60s", supply="feed-a", rating="0%")])
    keys = fill(truth, plant)
    a, b = (plant.resource_number[f"zurich/feed-{side}"] for side in "ab")
    whole = truth.resource_watts(a) + truth.resource_watts(b)
    told = run_until(truth, 90.0)
    assert [incident.kind for incident in told] == [IncidentKind.FAULT]
    assert truth.resource_watts(a) == 0.0
    assert truth.resource_watts(b) == pytest.approx(whole)
    assert truth.resource_cap_watts(a) == 0.0
    assert all(truth.pace(key) == 1.0 for key in keys)
    told = run_until(truth, 180.0)
    assert [incident.kind for incident in told] == [IncidentKind.MENDED]
    assert truth.resource_watts(a) == truth.resource_watts(b) == pytest.approx(whole / 2)


@pytest.mark.parametrize("feeds", [(1e6,), AB])
def test_without_redundancy_a_lost_feed_takes_its_racks_down_and_brings_them_back(
    feeds: tuple[float, ...],
) -> None:
    plant = a_plant(a_site(nodes=2, feeds_watts=feeds, redundant=False))
    truth = a_truth(plant, faults=[a_fault("60s", lasts="60s", supply="feed-a", rating="0%")])
    keys = fill(truth, plant)
    told = run_until(truth, 90.0)
    off = told[-1]
    assert (off.kind, off.keys, off.nodes) == (IncidentKind.OFF, tuple(keys), (0, 1))
    assert [truth.pace(key) for key in keys] == [0.0, 0.0]
    assert truth.resource_watts(plant.spots[0].loop_resource) == 0.0
    assert truth.tally.sites["zurich"].residual < 1e-9
    on = run_until(truth, 180.0)[-1]
    assert (on.kind, on.nodes) == (IncidentKind.ON, (0, 1))


@pytest.mark.parametrize(
    ("load", "trips_after"),
    [(0.79, None), (0.99, None), (1.01, 60.0), (1.19, 60.0), (1.21, 0.0)],
)
def test_a_breaker_holds_its_rating_for_ever_a_little_more_for_a_minute_and_much_more_not_at_all(
    load: float, trips_after: float | None
) -> None:
    plant = a_plant(a_site(nodes=4, feeds_watts=(4 * NODE_WATTS / load,)))
    truth = a_truth(plant)
    fill(truth, plant)
    tripped = [told for told in run_until(truth, 600.0) if told.kind is IncidentKind.TRIPPED]
    assert [told.at for told in tripped] == ([] if trips_after is None else [trips_after])
    assert truth.tally.trips == len(tripped)


def test_what_is_carried_beyond_the_cap_counts_after_the_tolerance_even_if_nothing_trips() -> None:
    plant = a_plant(a_site(nodes=4, feeds_watts=(4 * NODE_WATTS / 0.9,)))
    truth = a_truth(plant)
    keys = fill(truth, plant, at=100.0)
    truth.advance(150.0)
    assert truth.tally.cap_violation_seconds == {}
    truth.advance(200.0)
    assert truth.tally.cap_violation_seconds == {"zurich/feed-a": pytest.approx(40.0)}
    truth.unload(keys[0], 210.0)
    truth.advance(1000.0)
    assert truth.tally.cap_violation_seconds == {"zurich/feed-a": pytest.approx(50.0)}


def test_a_short_overload_neither_counts_nor_trips() -> None:
    plant = a_plant(a_site(nodes=4, feeds_watts=(4 * NODE_WATTS / 1.1,)))
    truth = a_truth(plant)
    keys = fill(truth, plant)
    truth.unload(keys[0], 59.0)
    run_until(truth, 600.0)
    assert truth.tally.trips == 0


def test_an_overload_that_is_gone_in_the_same_instant_trips_nothing() -> None:
    plant = a_plant(a_site(nodes=4, feeds_watts=(4 * NODE_WATTS / 1.3,)))
    truth = a_truth(plant)
    for key in fill(truth, plant):
        truth.unload(key, 0.0)
    assert not run_until(truth, 600.0)


def test_a_tripped_rack_goes_dark_until_people_reset_it() -> None:
    plant = a_plant(a_site(racks=2, nodes=2, rack_cap_watts=2 * NODE_WATTS * 0.8 / 1.1))
    truth = a_truth(plant)
    truth.load("a", [(0, 8), (1, 8)], 1.0, 1.0, 0.0)
    truth.load("b", [(2, 8)], 1.0, 1.0, 0.0)
    told = run_until(truth, 100.0)
    assert [(each.kind, each.at, each.subject) for each in told] == [
        (IncidentKind.TRIPPED, 60.0, "zurich/r1"),
        (IncidentKind.OFF, 60.0, "zurich/r1"),
    ]
    assert told[1].keys == ("a",)
    assert truth.is_off(0)
    assert not truth.is_off(2)
    assert truth.resource_cap_watts(plant.resource_number["zurich/r1"]) == 0.0
    told = run_until(truth, 4000.0)
    assert [(each.kind, each.at) for each in told] == [
        (IncidentKind.RESET, 60.0 + RESET_SECONDS),
        (IncidentKind.ON, 60.0 + RESET_SECONDS),
    ]
    assert truth.pace("b") == 1.0


def test_a_side_that_cannot_carry_both_follows_the_one_that_was_lost() -> None:
    plant = a_plant(a_site(nodes=4, feeds_watts=(4 * NODE_WATTS / 1.1, 4 * NODE_WATTS / 1.1)))
    truth = a_truth(plant, faults=[a_fault("60s", supply="feed-a", rating="0%")])
    fill(truth, plant)
    told = run_until(truth, 600.0)
    assert [(each.kind, each.at) for each in told] == [
        (IncidentKind.FAULT, 60.0),
        (IncidentKind.TRIPPED, 120.0),
        (IncidentKind.OFF, 120.0),
    ]


def test_a_rating_that_falls_below_the_load_is_an_overload() -> None:
    plant = a_plant(a_site(nodes=4, feeds_watts=(4 * NODE_WATTS / 0.75,)))
    truth = a_truth(plant, faults=[a_fault("60s", supply="feed-a", rating="70%")])
    fill(truth, plant)
    told = run_until(truth, 600.0)
    assert [(each.kind, each.at) for each in told[:2]] == [
        (IncidentKind.FAULT, 60.0),
        (IncidentKind.TRIPPED, 120.0),
    ]


def test_work_of_its_own_curve_draws_and_runs_as_it_was_measured() -> None:
    plant = a_plant(a_site(device="A100"))
    truth = a_truth(plant)
    curve = OwnCurve(cap_fractions=(0.5, 1.0), watts=(190.0, 310.0), speeds=(0.7, 1.0))
    gpus = plant.spots[0].node.gpus
    truth.load("own", [(0, gpus)], 1.0, 1.0, truth.now, curve)
    assert truth.node_gpu_watts(0) == pytest.approx(310.0)
    assert truth.pace("own") == 1.0
    truth.change("own", truth.now, cap_fraction=0.75)
    assert truth.node_gpu_watts(0) == pytest.approx(250.0)
    assert truth.pace("own") == pytest.approx(0.85)


def test_a_node_that_nobody_uses_sleeps_and_wakes_with_work() -> None:
    plant = a_plant(a_site())
    rack = plant.spots[0].power[0][0]
    awake, asleep = (
        Truth(plant, seed=0, exact=True, at=0.0, asleep=asleep).resource_watts(rack) for asleep in (1.0, 0.1)
    )
    assert asleep == pytest.approx(0.1 * awake)
    truths = [Truth(plant, seed=0, exact=True, at=0.0, asleep=asleep) for asleep in (1.0, 0.1)]
    for truth in truths:
        for node, spot in enumerate(plant.spots):
            truth.load(f"job-{node}", [(node, spot.node.gpus)], 1.0, 1.0, 0.0)
    assert truths[0].resource_watts(rack) == pytest.approx(truths[1].resource_watts(rack))
