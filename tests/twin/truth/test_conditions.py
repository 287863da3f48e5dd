"""Faults and weather: what changes, when, and what a faults file may not ask of the twin."""

import math

import pytest

from twin.truth.sites import HOUR, Weather, a_fault, a_plant, a_site, a_truth, run_until
from wattline.errors import DocumentError, UsageError
from wattline.facility import Facility, Link, Loop, TrafficClass
from wattline.spec.faults import Fault
from wattline.state import Plant
from wattline.twin.truth import IncidentKind, Truth


def test_a_fault_holds_from_its_beginning_to_its_end_at_any_epoch() -> None:
    plant, began_at = a_plant(), 1704067200.0
    faults = [a_fault("0.1s", lasts="0.7s", loop="loop", flow="40%", supply_temperature="33C")]
    truth = Truth(plant, seed=1, exact=True, at=began_at, faults=faults)
    loop = plant.spots[0].loop_resource
    seen = []
    while (at := truth.next_change_at()) < math.inf:
        told = truth.advance(at)
        seen.append(
            (told[0].kind, round(at - began_at, 3), truth.flow_fraction(loop), truth.supply_celsius(loop))
        )
    assert seen == [(IncidentKind.FAULT, 0.1, 0.4, 33.0), (IncidentKind.MENDED, 0.8, 1.0, 30.0)]


def test_a_fault_from_the_very_beginning_is_told_at_once() -> None:
    truth = a_truth(a_plant(), faults=[a_fault("0s", loop="loop", flow="40%")])
    assert truth.next_change_at() == 0.0
    assert [told.kind for told in truth.advance(0.0)] == [IncidentKind.FAULT]


def test_where_faults_overlap_the_worst_counts() -> None:
    plant = a_plant()
    faults = [
        a_fault("10s", lasts="30s", loop="loop", flow="40%"),
        a_fault("20s", lasts="10s", loop="loop", flow="60%"),
    ]
    truth = a_truth(plant, faults=faults)
    run_until(truth, 25.0)
    assert truth.flow_fraction(plant.spots[0].loop_resource) == 0.4


def test_a_fault_at_a_step_is_refused_by_name() -> None:
    fault = Fault.model_validate(
        {"name": "late-pump", "at": {"phase": "train", "step": 40}, "loop": "loop", "flow": "0%"}
    )
    with pytest.raises(UsageError, match="late-pump"):
        a_truth(a_plant(), faults=[fault])


def test_a_fault_of_something_that_is_not_there_is_refused() -> None:
    with pytest.raises(DocumentError, match="must name one loop"):
        a_truth(a_plant(), faults=[a_fault("1s", loop="nowhere", flow="0%")])


def test_a_link_is_left_with_what_its_fault_says() -> None:
    link = Link(
        name="wan",
        between=("north", "south"),
        bits_per_second=1e9,
        latency_seconds=0.1,
        shares=dict.fromkeys(TrafficClass, 0.25),
    )
    sites = (a_site(name="north"), a_site(name="south"))
    plant = Plant(Facility(name="two", sites=sites, links=(link,)))
    truth = a_truth(plant, faults=[a_fault("10s", link="wan", bandwidth="20%")])
    truth.drain_touched()
    assert truth.link_fraction("wan") == 1.0
    run_until(truth, 10.0)
    assert truth.link_fraction("wan") == 0.2
    assert list(truth.drain_touched().resources) == [
        plant.resource_number[f"wan:{each}"] for each in TrafficClass
    ]


def test_the_weather_wakes_only_when_a_supply_changes() -> None:
    class Mild(Weather):
        def supply_celsius(self, loop: Loop, at: float) -> float:
            return loop.supply_celsius + (2.0 if 5 * HOUR <= at < 6 * HOUR else 0.0)

    plant = a_plant()
    truth = a_truth(plant, surroundings={"zurich": Mild()})
    loop, woke = plant.spots[0].loop_resource, []
    while (at := truth.next_change_at()) <= 20 * HOUR:
        truth.advance(at)
        woke.append((at / HOUR, truth.supply_celsius(loop)))
    assert woke == [(5.0, 32.0), (6.0, 30.0)]


def test_a_fault_of_the_supply_outdoes_the_weather() -> None:
    plant = a_plant()
    faults = [a_fault("30min", lasts="2h", loop="loop", supply_temperature="40C")]
    truth = a_truth(plant, surroundings={"zurich": Weather()}, faults=faults)
    loop = plant.spots[0].loop_resource
    run_until(truth, 2.4 * HOUR)
    assert truth.supply_celsius(loop) == 40.0
    run_until(truth, 2.6 * HOUR)
    assert truth.supply_celsius(loop) == 32.0
