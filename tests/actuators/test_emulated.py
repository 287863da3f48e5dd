"""Emulated actuator: a cap reaches the facility, which gives its effect back as speed."""

from __future__ import annotations

import pytest

from wattline.actuators import Actuator, EmulatedActuator
from wattline.errors import UsageError
from wattline.facility import DEVICES, CoolingKind, Facility, Loop, Node, Rack, Site, Storage, Supply
from wattline.physics import LimitedBy
from wattline.telemetry import EmulatedFacility


@pytest.fixture
def facility() -> EmulatedFacility:
    node = Node(name="n1", rack="r1", device=DEVICES["A100"], gpus=2, cpus=8, other_watts=300.0)
    loop = Loop(
        name="crah",
        kind=CoolingKind.AIR,
        capacity_watts=20_000.0,
        supply_celsius=22.0,
        approach_kelvin=10.0,
        time_constant_seconds=120.0,
    )
    rack = Rack(
        name="r1",
        row="1",
        cap_watts=5_000.0,
        supplies=("a",),
        redundant=False,
        loop="crah",
        switch="s1",
        nodes=(node,),
    )
    site = Site(
        name="hall",
        region="eu",
        supplies=(Supply(name="a", rating_watts=10_000.0),),
        loops=(loop,),
        racks=(rack,),
        storage=Storage(name="disk", throughput_bytes_per_second=1e9),
        usd_per_kwh=0.2,
        carbon_zone="ch",
        grams_co2_per_kwh=50.0,
        pue=1.3,
        telemetry="emulated",
        engine="local",
    )
    emulated = EmulatedFacility(Facility(name="small", sites=(site,)), (), 1, 0.0)
    emulated.occupy("job.1", {"hall/n1": 2}, cpus=1.0)
    return emulated


def test_a_cap_slows_the_attempt_and_lifting_it_brings_full_speed_back(facility: EmulatedFacility) -> None:
    actuator: Actuator = EmulatedActuator(facility)
    actuator.set_power_cap("job.1", 0.6)
    assert facility.speed("job.1") == pytest.approx(0.899)
    assert facility.limited_by("job.1") is LimitedBy.POWER
    actuator.set_power_cap("job.1", 1.0)
    assert facility.speed("job.1") == 1.0
    assert facility.limited_by("job.1") is LimitedBy.NONE


def test_it_says_who_it_is_and_what_it_may_turn(facility: EmulatedFacility) -> None:
    actuator: Actuator = EmulatedActuator(facility)
    assert (actuator.name, actuator.kinds) == ("emulated", frozenset({"cap_power"}))


def test_a_cap_on_an_attempt_that_is_not_there_is_an_error(facility: EmulatedFacility) -> None:
    with pytest.raises(UsageError, match="not placed"):
        EmulatedActuator(facility).set_power_cap("gone.1", 0.5)
