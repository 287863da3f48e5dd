"""Small halls to plan for, and jobs that are more than they can do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from wattline.facility import Facility
from wattline.spec import FacilityDocument, PlanOption, build_facility, parse_document, read_policy
from wattline.twin.run import BEGINS_AT, Setting
from wattline.twin.surroundings import surroundings_by_site
from wattline.twin.traces import TraceJob
from wattline.twin.workload import Arrival, arrivals_of

HALL = """\
facility: halls
sites:
  north:
    region: eu
    tariff: {energy: 0.10}
    carbon: {zone: SE, intensity: 20}
    pue: 1.1
    WEATHER
    feeds: {a: {rating: 40kW}}
    pdus: {pdu-1: {feed: a, rating: 30kW}}
    loops:
      cdu: {kind: direct-to-chip, capacity: 20kW, supply: 30C, flow: 26L/min}
      spare: {kind: direct-to-chip, capacity: 8kW, supply: 32C}
    racks:
      "r1..r2": {cap: 6kW, power: [pdu-1], loop: cdu, nodes: {gpu: A100, gpus: 8, other: 1kW}}
    storage: {throughput: 1GB/s}
  south:
    region: eu
    tariff: {energy: 0.20}
    carbon: {zone: IT, intensity: 300}
    pue: 1.3
    feeds: {a: {rating: 20kW}, b: {rating: 20kW}}
    loops: {crah: {kind: air, capacity: 12kW, supply: 22C}}
    racks:
      r1: {cap: 6kW, power: [a, b], loop: crah, nodes: {gpu: A100, gpus: 8, other: 1kW}}
    storage: {throughput: 1GB/s}
links:
  - {name: ns, between: [north, south], bandwidth: 10Gbps, latency: 20ms}
"""


def halls(folder: Path | None = None, *, outside_celsius: float | None = None) -> Facility:
    """Two sites; the one in the north knows its weather where somebody says what it is."""
    text, source = HALL.replace("WEATHER", "# weather is not known"), ""
    if folder is not None and outside_celsius is not None:
        (folder / "weather.json").write_text(json.dumps(_weather(outside_celsius)))
        text, source = HALL.replace("WEATHER", "weather: {series: weather.json}"), str(folder / "halls.yaml")
    return build_facility(parse_document(text.encode(), FacilityDocument, file="halls.yaml"), source=source)


def _weather(celsius: float) -> dict[str, object]:
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    times = [(begin + timedelta(hours=hour)).strftime("%Y-%m-%dT%H:%M") for hour in range(8784)]
    return {
        "utc_offset_seconds": 0,
        "hourly_units": {"temperature_2m": "°C", "relative_humidity_2m": "%"},
        "hourly": {
            "time": times,
            "temperature_2m": [celsius] * len(times),
            "relative_humidity_2m": [50] * len(times),
        },
    }


def jobs(count: int = 60, *, every_seconds: float = 600.0, seed: int = 0) -> list[TraceJob]:
    """Some GPUs for some hours, one after the other: twice what the halls can do."""
    draw = Random(seed)
    return [
        TraceJob(
            name=f"job-{number}",
            arrives_seconds=number * every_seconds,
            gpus=draw.choice((2, 4, 8)),
            work_seconds=draw.uniform(1800.0, 4 * 3600.0),
        )
        for number in range(count)
    ]


def settings(facility: Facility, made: list[TraceJob]) -> Callable[[int], Setting]:
    policy = read_policy("default")

    def by_seed(seed: int) -> Setting:
        def arrivals() -> Iterator[Arrival]:
            return arrivals_of(made, BEGINS_AT, seed)

        around = surroundings_by_site(facility)
        return Setting(
            name="made", facility=facility, policy=policy, arrivals=arrivals, seed=seed, surroundings=around
        )

    return by_seed


def an_option(name: str = "more", cost: dict[str, object] | None = None, **change: object) -> PlanOption:
    return PlanOption.model_validate({"name": name, "changes": [change], "cost": cost})
