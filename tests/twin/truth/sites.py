"""Small sites of one loop each, with real devices, and a truth to watch them with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wattline.facility import DEVICES, CoolingKind, Facility, Loop, Node, Rack, Site, Storage, Supply
from wattline.spec.faults import Fault
from wattline.state import Plant
from wattline.twin.truth import Incident, Truth

HOUR = 3600.0
# What a facility document fills in for each kind: approach and time constant.
_LOOPS = {
    CoolingKind.AIR: (10.0, 45.0),
    CoolingKind.REAR_DOOR: (7.0, 60.0),
    CoolingKind.DIRECT_TO_CHIP: (4.0, 15.0),
    CoolingKind.IMMERSION: (6.0, 300.0),
}


class Weather:
    """Overhead, tariff and grid that change at each hour."""

    def supply_celsius(self, loop: Loop, at: float) -> float:
        return loop.supply_celsius + (at // HOUR) % 3

    def overhead(self, at: float, it_watts: float) -> float:
        return 1.1 + 0.1 * (at // HOUR)

    def usd_per_kwh(self, at: float) -> float:
        return 0.1 if at < HOUR else 0.3

    def grams_co2_per_kwh(self, at: float) -> float:
        return 100.0 if at < HOUR else 50.0


def a_site(
    kind: CoolingKind = CoolingKind.DIRECT_TO_CHIP,
    *,
    name: str = "zurich",
    device: str = "H100",
    racks: int = 1,
    nodes: int = 4,
    other_watts: float = 2000.0,
    rack_cap_watts: float = 1e6,
    feeds_watts: Sequence[float] = (1e7,),
    redundant: bool = True,
    loop_watts: float | None = None,
    supply_celsius: float = 30.0,
) -> Site:
    """Each loop carries its racks flat out at its nominal approach unless said otherwise."""
    gpu = DEVICES[device]
    approach_kelvin, time_constant_seconds = _LOOPS[kind]
    flat_out_watts = racks * nodes * (8 * gpu.limit_watts + other_watts)
    loop = Loop(
        name=f"{name}/loop",
        kind=kind,
        capacity_watts=loop_watts or flat_out_watts,
        supply_celsius=supply_celsius,
        approach_kelvin=approach_kelvin,
        time_constant_seconds=time_constant_seconds,
    )
    feeds = tuple(
        Supply(name=f"{name}/feed-{letter}", rating_watts=watts)
        for letter, watts in zip("ab", feeds_watts, strict=False)
    )
    return Site(
        name=name,
        region="eu",
        supplies=feeds,
        loops=(loop,),
        racks=tuple(
            _rack(f"{name}/r{number}", loop, feeds, redundant, rack_cap_watts, nodes, device, other_watts)
            for number in range(1, racks + 1)
        ),
        storage=Storage(name=f"{name}/scratch", throughput_bytes_per_second=1e12),
        usd_per_kwh=0.1,
        carbon_zone="XX",
        grams_co2_per_kwh=100.0,
        pue=1.25,
        telemetry="emulated",
        engine="local",
    )


def _rack(
    name: str,
    loop: Loop,
    feeds: tuple[Supply, ...],
    redundant: bool,
    cap_watts: float,
    nodes: int,
    device: str,
    other_watts: float,
) -> Rack:
    return Rack(
        name=name,
        row="row",
        cap_watts=cap_watts,
        supplies=tuple(feed.name for feed in feeds),
        redundant=redundant,
        loop=loop.name,
        switch=name,
        nodes=tuple(
            Node(
                name=f"{name}-n{number}",
                rack=name,
                device=DEVICES[device],
                gpus=8,
                cpus=64,
                other_watts=other_watts,
            )
            for number in range(1, nodes + 1)
        ),
    )


def a_plant(*sites: Site) -> Plant:
    return Plant(Facility(name="test", sites=sites or (a_site(),)))


def a_truth(plant: Plant, *, exact: bool = True, seed: int = 1, **given: Any) -> Truth:
    return Truth(plant, seed=seed, exact=exact, at=0.0, **given)


def a_fault(after: str, **what: Any) -> Fault:
    """As people write it: `a_fault("1h", loop="loop", flow="0%")`."""
    return Fault.model_validate({"name": "fault", "at": {"after": after}, **what})


def fill(truth: Truth, plant: Plant, at: float = 0.0, utilisation: float = 1.0) -> list[str]:
    """One job on each node, on all of its GPUs; their keys are the nodes' names."""
    for number, spot in enumerate(plant.spots):
        truth.load(spot.node.name, [(number, spot.node.gpus)], utilisation, 1.0, at)
    return [spot.node.name for spot in plant.spots]


def run_until(truth: Truth, at: float) -> list[Incident]:
    """Let everything happen that is due by then, one change after another."""
    told: list[Incident] = []
    while truth.next_change_at() <= at:
        told += truth.advance(truth.next_change_at())
    return told + truth.advance(at)
