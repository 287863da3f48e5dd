"""The small fleet that failures are tried on: three halls of one node with eight GPUs, and runs that save."""

from __future__ import annotations

from collections.abc import Sequence

from wattline.facility import (
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
from wattline.spec import Policy, RungDocument
from wattline.state import JobRequest, RunSubmitted

GPU_WATTS = 400.0
MONDAY = 4 * 86400.0
_LADDER = ({"cap_power": "50%"}, {"pause": "5m"}, {"stop": True})

_DEVICE = Device(
    name="A100",
    limit_watts=GPU_WATTS,
    least_limit_watts=100.0,
    idle_watts=0.0,
    throttle_celsius=85.0,
    slowdown_celsius=89.0,
    shutdown_celsius=92.0,
    kelvin_per_watt_air=0.01,
    kelvin_per_watt_liquid=0.01,
    usd_per_hour=1.0,
    sure="assumed",
)


def a_facility(names: Sequence[str]) -> Facility:
    links = [
        Link(
            name=f"{one}-{other}",
            between=(one, other),
            bits_per_second=1e9,
            latency_seconds=0.01,
            shares={TrafficClass.CHECKPOINT: 0.5, TrafficClass.CONTROL: 0.5},
            usd_per_gigabyte=0.0,
        )
        for number, one in enumerate(names)
        for other in names[number + 1 :]
    ]
    return Facility(name="fleet", sites=tuple(_site(name) for name in names), links=tuple(links))


def _site(name: str) -> Site:
    node = Node(name=f"{name}/n1", rack=f"{name}/r1", device=_DEVICE, gpus=8, cpus=64, other_watts=0.0)
    return Site(
        name=name,
        region="eu",
        supplies=(Supply(name=f"{name}/feed", rating_watts=8 * GPU_WATTS, continuous_fraction=1.0),),
        loops=(
            Loop(
                name=f"{name}/loop",
                kind=CoolingKind.AIR,
                capacity_watts=1e6,
                supply_celsius=20.0,
                approach_kelvin=10.0,
                time_constant_seconds=300.0,
            ),
        ),
        racks=(
            Rack(
                name=f"{name}/r1",
                row=f"{name}/row",
                cap_watts=1e6,
                supplies=(f"{name}/feed",),
                redundant=False,
                loop=f"{name}/loop",
                switch=f"{name}/r1",
                nodes=(node,),
            ),
        ),
        storage=Storage(name=f"{name}/scratch", throughput_bytes_per_second=1e12),
        usd_per_kwh=0.1,
        carbon_zone="XX",
        grams_co2_per_kwh=100.0,
        pue=1.0,
        telemetry="nvml",
        engine="local",
        sleep=None,
    )


def a_policy() -> Policy:
    """Quick thresholds: a step of training is a second."""
    return Policy.model_validate(
        {"thresholds": {"settle": "3s", "acknowledge_within": "20s", "clear_for": "5s", "power_margin": "0%"}}
    )


def a_run(
    number: int, *, at: float, steps: int, goes_on: bool, saves: bool, replicate_to: Sequence[str]
) -> RunSubmitted:
    """One job; its steps are told by how long it may run, a hundred seconds for each."""
    run = f"r{number}"
    request = JobRequest(
        job=f"{run}/train",
        run=run,
        project="nlp",
        owner="nlp",
        model="tiny",
        gpus=4,
        max_duration_seconds=100.0 * steps,
        checkpoints=saves,
        replicate_to=tuple(replicate_to) if saves else (),
        restart_max=20,
        on_isolation="continue" if goes_on else "stop",
        ladder=tuple(RungDocument.model_validate(rung).rung() for rung in _LADDER[: 2 if saves else 1]),
    )
    return RunSubmitted(at=at, run=run, pipeline="p", jobs=(request,), project="nlp")
