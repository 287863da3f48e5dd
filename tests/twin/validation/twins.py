"""Whole runs of the twin that a test can look into: the truth, what happened there, and every record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

from building import a_link
from twin.truth.sites import a_fault, a_site
from wattline.control import StepRecord, decode_step
from wattline.facility import CoolingKind, Facility
from wattline.spec import Fault, Locality, Policy, read_policy
from wattline.state import JobRequest, State
from wattline.twin.meters import Meters
from wattline.twin.run import BEGINS_AT, RunJournal, Setting, drive, metered
from wattline.twin.truth import Incident, Truth
from wattline.twin.workload import LARGE_CLASS, SMALL_CLASS, Arrival
from wattline.twin.world import TwinWorld

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that happened by itself, and how hot each node's hottest die was then."""

    incident: Incident
    celsius: tuple[float, ...]


class WatchedTruth(Truth):
    """Notes what it tells the world."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.seen: list[Seen] = []

    def advance(self, at: float) -> list[Incident]:
        told = super().advance(at)
        celsius = tuple(self.node_celsius(node, at) for node in range(len(self._floor.nodes)))
        self.seen += [Seen(incident, celsius) for incident in told]
        return told


@dataclass(slots=True)
class Twin:
    """One run, step by step; what `run` builds, with the parts in reach."""

    setting: Setting
    state: State
    truth: WatchedTruth
    world: TwinWorld
    journal: RunJournal
    kept: list[bytes] = field(default_factory=list)

    @property
    def records(self) -> list[StepRecord]:
        return [decode_step(data) for data in self.kept]

    @property
    def residual(self) -> float:
        return max(site.residual for site in self.truth.tally.sites.values())

    def seen(self, kind: str) -> list[Seen]:
        return [seen for seen in self.truth.seen if seen.incident.kind == kind]


def watch(setting: Setting, *, forget: bool = True) -> Twin:
    """Run to the end, or for as long as the setting says."""
    twin = build(setting, forget=forget)
    drive(twin.world, twin.state, setting, twin.journal)
    twin.world.finish()
    return twin


def build(setting: Setting, *, forget: bool = True) -> Twin:
    state, seed, exact = State(metered(setting.facility)), setting.seed, setting.exact
    truth = WatchedTruth(
        state.plant,
        seed=seed,
        exact=exact,
        at=setting.begins_at,
        surroundings=setting.surroundings,
        faults=setting.faults,
    )
    world = TwinWorld(
        state.plant,
        setting.arrivals(),
        truth,
        Meters(truth, state.plant, seed, exact),
        begins_at=setting.begins_at,
        rates=setting.rates,
        overheads=setting.overheads,
        forget=forget,
    )
    kept: list[bytes] = []
    return Twin(setting, state, truth, world, RunJournal(kept.append), kept)


def a_setting(facility: Facility, arrivals: Sequence[Arrival], **given: Any) -> Setting:
    asked: dict[str, Any] = {"name": "test", "policy": default_policy()}
    in_order = sorted(arrivals, key=lambda arrival: arrival.at)
    return Setting(facility=facility, arrivals=lambda: iter(in_order), **(asked | given))


@cache
def default_policy() -> Policy:
    return read_policy("default")


def an_arrival(
    name: str, after_seconds: float, gpus: int, work_seconds: float, *, utilisation: float = 1.0, **asked: Any
) -> Arrival:
    request = JobRequest(
        job=f"{name}/train",
        run=name,
        project="nlp",
        scheduling_class=LARGE_CLASS if gpus >= 8 else SMALL_CLASS,
        gpus=gpus,
        checkpoints=asked.pop("checkpoints", True),
        **asked,
    )
    return Arrival(BEGINS_AT + after_seconds, request, work_seconds, utilisation)


def fill_up(facility: Facility, *, hours: float = 4.0, utilisation: float = 1.0) -> list[Arrival]:
    """A job for every node, on all of its GPUs, from the beginning on."""
    nodes = [node for site in facility.sites for rack in site.racks for node in rack.nodes]
    return [
        an_arrival(f"job-{number}", 1.0, node.gpus, hours * HOUR, utilisation=utilisation)
        for number, node in enumerate(nodes)
    ]


def two_sites() -> Facility:
    """A hall in air and one with cold plates, both with less power than their nodes could draw."""
    north = a_site(
        CoolingKind.AIR, name="north", device="A100", racks=2, nodes=2, rack_cap_watts=8000.0,
        feeds_watts=(19_000.0, 19_000.0), supply_celsius=27.0,
    )  # fmt: skip
    south = a_site(name="south", racks=2, nodes=2, rack_cap_watts=12_000.0, feeds_watts=(27_000.0,))
    return Facility(name="test", sites=(north, south), links=(a_link(("north", "south")),))


def some_work(chance: Random, jobs: int = 90, *, gangs: bool = True) -> list[Arrival]:
    """Jobs of all sizes over two hours; every eighth asks for more GPUs than there are at any site.

    Without gangs none but those is larger than a node, and none may be spread over several.
    """
    arrivals = []
    for number in range(jobs):
        gpus = chance.choice((1, 2, 4, 8, 12, 16) if gangs else (1, 2, 4, 8))
        arrivals.append(
            an_arrival(
                f"job-{number}",
                chance.uniform(0.0, 2 * HOUR),
                64 if number % 8 == 7 else gpus,
                chance.uniform(60.0, 1.5 * HOUR),
                utilisation=chance.choice((0.1, 0.5, 0.9, 1.1)),
                checkpoints=chance.random() < 0.8,
                locality=Locality.ANY if gangs else Locality.NODE,
                max_duration_seconds=chance.choice((None, 2 * HOUR)),
            )
        )
    return arrivals


def some_faults(chance: Random) -> list[Fault]:
    """A pump, a feed, a chiller and a link, each at its own time."""

    def after() -> str:
        return f"{chance.randrange(300, 6000)}s"

    lasts = f"{chance.randrange(60, 900)}s"
    return [
        a_fault(after(), lasts=lasts, loop="south/loop", flow=chance.choice(("0%", "10%", "50%"))),
        a_fault(after(), lasts=lasts, supply="north/feed-a", rating=chance.choice(("0%", "60%"))),
        a_fault(after(), lasts="20min", loop="north/loop", supply_temperature="38C"),
        a_fault(after(), lasts="20min", link="north-south", bandwidth="0%"),
    ]
