from __future__ import annotations

import pytest

from wattline.facility import DEVICES, Facility, Node, Rack, Site, Storage, Supply


def a_node(**changes: object) -> Node:
    figures: dict[str, object] = {
        "name": "z/r1-n1",
        "rack": "z/r1",
        "device": DEVICES["A100"],
        "gpus": 4,
        "cpus": 32,
        "other_watts": 400.0,
    }
    return Node(**(figures | changes))  # type: ignore[arg-type]


def a_site(*nodes: Node, telemetry: str = "emulated") -> Site:
    rack = Rack(
        name="z/r1",
        row="z/1",
        cap_watts=8e3,
        supplies=("z/a",),
        redundant=False,
        loop="z/crah",
        switch="z/leaf",
        nodes=nodes,
    )
    return Site(
        name="z",
        region="eu",
        supplies=(Supply(name="z/a", rating_watts=20e3),),
        loops=(),
        racks=(rack,),
        storage=Storage(name="z/scratch", throughput_bytes_per_second=1e9),
        usd_per_kwh=0.1,
        carbon_zone="CH",
        grams_co2_per_kwh=45.0,
        pue=1.3,
        telemetry=telemetry,
        engine="local",
    )


def test_a_node_draws_its_gpus_and_everything_else() -> None:
    assert a_node().idle_watts == 4 * 68.0 + 400.0
    assert a_node().nameplate_watts == 4 * 400.0 + 400.0


def test_a_node_without_gpus_draws_only_everything_else() -> None:
    node = a_node(device=None, gpus=0)
    assert node.idle_watts == node.nameplate_watts == 400.0


def test_a_breaker_is_loaded_to_its_continuous_part_only() -> None:
    assert Supply(name="z/a", rating_watts=20e3).usable_watts == pytest.approx(16e3)


def test_a_facility_counts_the_gpus_of_all_its_nodes() -> None:
    site = a_site(a_node(), a_node(name="z/r1-n2", gpus=8), a_node(name="z/r1-n3", device=None, gpus=0))
    assert Facility(name="f", sites=(site,)).gpus == 12


def test_a_facility_is_emulated_when_any_site_is() -> None:
    assert Facility(name="f", sites=(a_site(), a_site(telemetry="nvml"))).emulated
    assert not Facility(name="f", sites=(a_site(telemetry="nvml"),)).emulated


def test_two_facilities_are_equal_wherever_they_were_read_from() -> None:
    assert Facility(name="f", sites=(), source="a") == Facility(name="f", sites=(), source="b")
