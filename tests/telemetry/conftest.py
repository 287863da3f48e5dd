"""A small facility: A100s in air that moves heat twenty times faster, a CPU box, and a second site."""

from __future__ import annotations

import pytest

from wattline.facility import (
    DEVICES,
    CoolingKind,
    Device,
    Facility,
    Link,
    Loop,
    Node,
    Rack,
    Site,
    Storage,
    Supply,
    TrafficClass,
)


def a_node(name: str, device: Device | None, gpus: int) -> Node:
    return Node(name=name, rack="r1", device=device, gpus=gpus, cpus=64, other_watts=800.0)


def a_site(name: str, loop: Loop, nodes: tuple[Node, ...]) -> Site:
    return Site(
        name=name,
        region="eu",
        supplies=(
            Supply(name="feed", rating_watts=40_000.0),
            Supply(name="a", rating_watts=20_000.0, parent="feed"),
            Supply(name="b", rating_watts=20_000.0, parent="feed"),
        ),
        loops=(loop,),
        racks=(
            Rack(
                name="r1",
                row="1",
                cap_watts=15_000.0,
                supplies=("a", "b"),
                redundant=True,
                loop=loop.name,
                switch="s1",
                nodes=nodes,
            ),
        ),
        storage=Storage(name=f"{name}-disk", throughput_bytes_per_second=1e9),
        usd_per_kwh=0.2,
        carbon_zone="ch",
        grams_co2_per_kwh=50.0,
        pue=1.3,
        telemetry="emulated",
        engine="local",
        thermal_time_scale=20.0,
    )


@pytest.fixture
def lab() -> Facility:
    air = Loop(
        name="crah",
        kind=CoolingKind.AIR,
        capacity_watts=20_000.0,
        supply_celsius=22.0,
        approach_kelvin=10.0,
        time_constant_seconds=120.0,
    )
    plates = Loop(
        name="cdu",
        kind=CoolingKind.DIRECT_TO_CHIP,
        capacity_watts=20_000.0,
        supply_celsius=30.0,
        approach_kelvin=8.0,
        time_constant_seconds=60.0,
    )
    a100, h100 = DEVICES["A100"], DEVICES["H100"]
    zurich = a_site(
        "zurich", air, (a_node("r1-n1", a100, 8), a_node("r1-n2", a100, 8), a_node("r1-c1", None, 0))
    )
    frankfurt = a_site("frankfurt", plates, (a_node("r1-n9", h100, 8),))
    link = Link(
        name="zrh-fra",
        between=("zurich", "frankfurt"),
        bits_per_second=10e9,
        latency_seconds=0.01,
        shares={TrafficClass.CONTROL: 0.1, TrafficClass.TRAINING: 0.9},
    )
    return Facility(name="lab", sites=(zurich, frankfurt), links=(link,))
