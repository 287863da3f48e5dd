from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wattline.errors import UnavailableError
from wattline.facility import CoolingKind, Facility, Site
from wattline.spec import (
    find_facility,
    read_facility,
    read_policy,
    shipped_facilities,
    shipped_policies,
)

HALLS = ("lab", "philly-800", "three-sites")
NAMES = ("lab", "philly-800", "three-sites-and-cloud", "three-sites")


@pytest.fixture(scope="module", params=HALLS)
def facility(request: pytest.FixtureRequest) -> Facility:
    return read_facility(request.param)


def supply_loads(site: Site) -> Iterator[tuple[str, float]]:
    """What each supply carries with all its racks at their caps; each side of a redundant pair, all of it."""
    parents = {supply.name: supply.parent for supply in site.supplies}
    for supply in site.supplies:
        yield (
            supply.name,
            sum(
                rack.cap_watts
                for rack in site.racks
                for name in rack.supplies
                if supply.name in (name, parents[name])
            ),
        )


def test_the_shipped_examples_are_these() -> None:
    assert tuple(shipped_facilities()) == NAMES
    assert tuple(shipped_policies()) == ("capped-fleet", "default", "sleeping-nodes")


@pytest.mark.parametrize(
    ("name", "sites", "gpus"), [("lab", 2, 64), ("philly-800", 1, 800), ("three-sites", 3, 2496)]
)
def test_a_shipped_facility_has_its_gpus(name: str, sites: int, gpus: int) -> None:
    facility = read_facility(name)
    assert (facility.name, len(facility.sites), facility.gpus) == (name, sites, gpus)
    assert Path(facility.source).name == f"{name}.yaml"
    assert facility.emulated


def test_a_shipped_facility_stays_readable(facility: Facility) -> None:
    assert len(Path(facility.source).read_text().splitlines()) < 200


def test_every_supply_carries_its_racks_at_their_caps(facility: Facility) -> None:
    for site in facility.sites:
        usable = {supply.name: supply.usable_watts for supply in site.supplies}
        for name, load_watts in supply_loads(site):
            assert 0 < load_watts <= usable[name], name


def test_racks_are_oversubscribed_but_not_absurdly(facility: Facility) -> None:
    for site in facility.sites:
        for rack in site.racks:
            nameplate_watts = sum(node.nameplate_watts for node in rack.nodes)
            assert 0.85 * nameplate_watts <= rack.cap_watts < nameplate_watts, rack.name


def test_loops_carry_most_but_not_all_of_what_racks_may_draw(facility: Facility) -> None:
    for site in facility.sites:
        for loop in site.loops:
            caps_watts = sum(rack.cap_watts for rack in site.racks if rack.loop == loop.name)
            assert 0.85 * caps_watts <= loop.capacity_watts <= caps_watts, loop.name


def test_every_gpu_flat_out_on_a_full_loop_stays_below_throttling(facility: Facility) -> None:
    liquid = {CoolingKind.DIRECT_TO_CHIP, CoolingKind.IMMERSION}
    for site in facility.sites:
        loops = {loop.name: loop for loop in site.loops}
        for rack in site.racks:
            loop = loops[rack.loop]
            for device in {node.device for node in rack.nodes if node.device}:
                kelvin_per_watt = (
                    device.kelvin_per_watt_liquid if loop.kind in liquid else device.kelvin_per_watt_air
                )
                coolant_celsius = loop.supply_celsius + loop.approach_kelvin
                die_celsius = coolant_celsius + device.limit_watts * kelvin_per_watt
                assert die_celsius < device.throttle_celsius - 5, (rack.name, device.name)


def test_racks_are_no_denser_than_their_cooling_allows(facility: Facility) -> None:
    most_watts = {
        CoolingKind.AIR: 15e3,
        CoolingKind.REAR_DOOR: 40e3,
        CoolingKind.DIRECT_TO_CHIP: 140e3,
        CoolingKind.IMMERSION: 100e3,
    }
    for site in facility.sites:
        kinds = {loop.name: loop.kind for loop in site.loops}
        for rack in site.racks:
            assert rack.cap_watts <= most_watts[kinds[rack.loop]], rack.name


def test_direct_to_chip_flow_follows_the_rule_of_thumb(facility: Facility) -> None:
    for site in facility.sites:
        for loop in site.loops:
            if loop.kind is CoolingKind.DIRECT_TO_CHIP:
                assert loop.flow_litres_per_minute is not None
                assert 1.2 <= loop.flow_litres_per_minute / (loop.capacity_watts / 1e3) <= 1.5


def test_a_job_of_eight_gpus_at_its_documented_peak_fits_a_lab_rack() -> None:
    for site in read_facility("lab").sites:
        for rack in site.racks:
            busy, *idle = rack.nodes
            assert busy.gpus == 8
            assert 6500.0 + sum(node.idle_watts for node in idle) <= rack.cap_watts


def test_three_sites_are_cooled_in_four_ways_and_joined_pairwise() -> None:
    facility = read_facility("three-sites")
    assert {loop.kind for site in facility.sites for loop in site.loops} == set(CoolingKind)
    assert len({frozenset(link.between) for link in facility.links}) == 3
    assert len({site.region for site in facility.sites}) == 3


def test_the_default_policy_has_the_documented_classes_and_only_warns() -> None:
    policy = read_policy("default")
    assert set(policy.classes) == {
        "high-density-training",
        "low-power-experiment",
        "cross-site-validation",
        "checkpoint-heavy",
        "latency-sensitive-build",
    }
    assert policy.teams == {}
    assert policy.under_pressure
    assert {rule.mode.value for rule in policy.rules} == {"warn"}


def test_a_bare_name_that_does_not_ship_is_told_the_nearest() -> None:
    with pytest.raises(UnavailableError, match="'labb' is neither a file nor one that ships") as raised:
        find_facility("labb")
    assert raised.value.hint == "did you mean 'lab'?"
    with pytest.raises(UnavailableError) as raised:
        find_facility("nothing-like-it")
    assert raised.value.hint == "name a file, or one of lab, philly-800, three-sites-and-cloud, three-sites"


def test_a_path_is_taken_as_it_is() -> None:
    assert find_facility("halls/lab.yaml") == Path("halls/lab.yaml")
    assert find_facility("lab").is_file()
