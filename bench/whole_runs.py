"""Whole runs of the twin with their parts in reach: the truth, what happened there, every record.

The facilities are those that ship; workloads and faults are drawn by lot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import msgspec

from wattline.control import Decide, StepRecord, decode_step
from wattline.facility import Facility
from wattline.policy import decide as decide_by_policy
from wattline.spec import Fault, Policy, read_facility, read_policy
from wattline.state import BEGINNINGS, Decision, JobRequest, Snapshot, State
from wattline.twin.baselines import BASELINES, decide_blind
from wattline.twin.meters import Meters
from wattline.twin.run import BEGINS_AT, RunJournal, Setting, drive, metered
from wattline.twin.truth import Incident, Truth
from wattline.twin.workload import LARGE_CLASS, SMALL_CLASS, Arrival
from wattline.twin.world import TwinWorld
from wattline.units import SECONDS_PER_HOUR

POLICIES: dict[str, Decide] = {"default": decide_by_policy, **BASELINES}


class WatchedTruth(Truth):
    """Notes what happens by itself, and how hot each node's hottest die is then."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.seen: list[tuple[Incident, tuple[float, ...]]] = []

    def advance(self, at: float) -> list[Incident]:
        told = super().advance(at)
        if told:
            celsius = tuple(self.node_celsius(node, at) for node in range(len(self._floor.nodes)))
            self.seen += [(incident, celsius) for incident in told]
        return told


@dataclass(slots=True)
class WholeRun:
    state: State
    truth: WatchedTruth
    world: TwinWorld
    kept: list[bytes] = field(default_factory=list)

    @property
    def records(self) -> list[StepRecord]:
        return [decode_step(data) for data in self.kept]

    def seen(self, kind: str) -> list[tuple[Incident, tuple[float, ...]]]:
        return [(incident, celsius) for incident, celsius in self.truth.seen if incident.kind == kind]


def run_whole(setting: Setting) -> WholeRun:
    """What `wattline.twin.run` does, without the report."""
    state, seed, exact = State(metered(setting.facility)), setting.seed, setting.exact
    truth = WatchedTruth(state.plant, seed=seed, exact=exact, at=setting.begins_at, faults=setting.faults)
    meters = Meters(truth, state.plant, seed, exact)
    world = TwinWorld(
        state.plant,
        setting.arrivals(),
        truth,
        meters,
        begins_at=setting.begins_at,
        rates=setting.rates,
        overheads=setting.overheads,
    )
    whole = WholeRun(state, truth, world)
    drive(world, state, setting, RunJournal(whole.kept.append))
    world.finish()
    return whole


@cache
def three_sites() -> Facility:
    return read_facility("three-sites")


def one_site(name: str) -> Facility:
    return Facility(name=name, sites=tuple(site for site in three_sites().sites if site.name == name))


def a_setting(facility: Facility, arrivals: Sequence[Arrival], **given: Any) -> Setting:
    asked: dict[str, Any] = {"name": "lots", "policy": read_policy("default")}
    in_order = sorted(arrivals, key=lambda arrival: arrival.at)
    return Setting(facility=facility, arrivals=lambda: iter(in_order), **(asked | given))


def an_arrival(
    name: str, after_seconds: float, gpus: int, hours: float, utilisation: float = 1.0, **asked: Any
) -> Arrival:
    request = JobRequest(
        job=f"{name}/train",
        run=name,
        scheduling_class=LARGE_CLASS if gpus >= 8 else SMALL_CLASS,
        gpus=gpus,
        checkpoints=True,
        **asked,
    )
    return Arrival(BEGINS_AT + after_seconds, request, hours * SECONDS_PER_HOUR, utilisation)


def fill_up(facility: Facility) -> list[Arrival]:
    """A job for every node, on all of its GPUs, flat out from the beginning on."""
    nodes = [node for site in facility.sites for rack in site.racks for node in rack.nodes]
    return [an_arrival(f"job-{number}", 1.0, node.gpus, 4.0) for number, node in enumerate(nodes)]


def some_work(chance: Random, jobs: int = 200) -> list[Arrival]:
    """Jobs of all sizes over three hours, more than a site can take; every tenth can never fit."""
    return [
        an_arrival(
            f"job-{number}",
            chance.uniform(0.0, 3 * SECONDS_PER_HOUR),
            4096 if number % 10 == 9 else chance.choice((1, 2, 4, 8, 16, 32, 64)),
            chance.uniform(0.05, 4.0),
            chance.choice((0.1, 0.5, 0.9, 1.1)),
        )
        for number in range(jobs)
    ]


def some_faults(chance: Random) -> list[Fault]:
    """A pump, a feed, a chiller: each at its own time."""

    def after_seconds() -> int:
        return chance.randrange(1800, 9000)

    flow, rating = chance.choice(("0%", "20%")), chance.choice(("0%", "50%"))
    return [
        a_fault(after_seconds(), lasts="10min", loop="lulea/cdu-1", flow=flow),
        a_fault(after_seconds(), lasts="20min", supply="lulea/a", rating=rating),
        a_fault(after_seconds(), lasts="30min", loop="lulea/cdu-2", supply_temperature="45C"),
    ]


def a_fault(after_seconds: int, **what: Any) -> Fault:
    return Fault.model_validate({"name": "fault", "at": {"after": f"{after_seconds}s"}, **what})


def capped(fraction: float) -> Decide:
    """Power-blind, but for a cap that every job runs under."""

    def decide(snapshot: Snapshot, policy: Policy) -> Decision:
        decision = decide_blind(snapshot, policy)
        actions = tuple(
            msgspec.structs.replace(action, fraction=fraction) if action.kind in BEGINNINGS else action
            for action in decision.actions
        )
        return msgspec.structs.replace(decision, actions=actions)

    return decide


@cache
def rough_runs() -> dict[tuple[str, int], WholeRun]:
    """A busy site with faults, under every policy: sections 3, 7 and 9 look at them."""
    facility, found = one_site("lulea"), {}
    for policy, decide in POLICIES.items():
        for seed in (0, 1):
            chance = Random(seed)
            work, faults = some_work(chance), some_faults(chance)
            found[policy, seed] = run_whole(
                a_setting(facility, work, faults=faults, seed=seed, decide=decide, until_seconds=8 * 3600)
            )
    return found
