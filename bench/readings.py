"""How much of a processor do the readings of ten thousand nodes take, every ten seconds?

    python -m bench.readings [--nodes 10000] [--minutes 10]

Eight GPUs in each node, with power and temperature; racks, feed and loop beside them; a job on every second
node. Answers are made as a Prometheus gives them (a minute of samples, the labels of the DCGM exporter), then
taken as the reader, the meters, the loop and its journal (SQLite, on a disk) take them. Making them is not
counted. Every value moves.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from wattline.control import step
from wattline.facility import Facility
from wattline.live.changes import Changes
from wattline.spec import FacilityDocument, build_facility, parse_document, read_policy
from wattline.state import Action, AttemptStarted, Decision, Event, JobRequest, RunSubmitted, State
from wattline.store import open_store
from wattline.store.steps import StepJournal
from wattline.telemetry import Batch, Reading
from wattline.telemetry.prometheus import PrometheusSource

EVERY_SECONDS = 10.0
_GPUS, _NODES_IN_RACK = 8, 8
_SAMPLES = 6
_HALL = """
facility: hall
sites:
  hall:
    region: eu
    tariff: {{energy: 0.1}}
    carbon: {{zone: CH, intensity: 30}}
    feeds: {{feed: {{rating: 1GW}}}}
    loops: {loops}
    racks: {racks}
    storage: {{throughput: 1TB/s}}
    telemetry:
      source: prometheus
      url: http://prometheus:9090
      series:
        gpu_joules: null
        gpu_power_violation_seconds: null
        gpu_thermal_violation_seconds: null
        rack_watts: {{query: pdu_watts}}
        loop_heat_watts: {{query: cdu_heat_watts}}
        coolant_celsius: {{query: cdu_supply_celsius}}
        supply_watts: {{query: feed_watts}}
"""


def a_hall(nodes: int) -> Facility:
    racks = max(1, nodes // _NODES_IN_RACK)
    loops = max(1, racks // 25)
    per_loop = -(-racks // loops)
    listed = [
        f"r{first}..r{min(racks, first + per_loop - 1)}: {{cap: 90kW, power: [feed], loop: cdu-{number}, "
        f"nodes: {{count: {_NODES_IN_RACK}, gpu: H100, gpus: {_GPUS}, other: 2kW}}}}"
        for number, first in enumerate(range(1, racks + 1, per_loop), start=1)
    ]
    kind = "{kind: direct-to-chip, capacity: 10MW, supply: 30C}"
    loops_listed = ", ".join(f"cdu-{number}: {kind}" for number in range(1, loops + 1))
    document = _HALL.format(loops=f"{{{loops_listed}}}", racks=f"{{{', '.join(listed)}}}")
    return build_facility(parse_document(document.encode(), FacilityDocument, file="hall.yaml"))


class Answers:
    """What a Prometheus would say of the hall, anew each time."""

    def __init__(self, facility: Facility, seed: int) -> None:
        (self._site,) = facility.sites
        self._chance = random.Random(seed)
        self._labels = [
            f'{{"metric":{{"__name__":"DCGM","DCGM_FI_DRIVER_VERSION":"550.54.15","Hostname":"{node.name[5:]}",'
            f'"UUID":"GPU-{number:08x}-1111-2222-3333-444444444444","device":"nvidia{gpu}","gpu":"{gpu}",'
            f'"instance":"{node.name[5:]}:9400","job":"dcgm-exporter","modelName":"NVIDIA H100 80GB HBM3",'
            f'"pci_bus_id":"00000000:{gpu:02x}:00.0","namespace":"gpu","pod":"dcgm-{number}"}},"values":['
            for number, (node, gpu) in enumerate(
                (node, gpu) for rack in self._site.racks for node in rack.nodes for gpu in range(_GPUS)
            )
        ]

    def body(self, quantity: str, at: float) -> bytes:
        chance, times = (
            self._chance.random,
            [at - EVERY_SECONDS * back for back in range(_SAMPLES - 1, -1, -1)],
        )
        begun = "".join(f'[{one:.3f},"500"],' for one in times[:-1])
        if quantity.startswith("gpu_"):
            least, spread = (600.0, 90.0) if quantity == "gpu_watts" else (55.0, 12.0)
            rows = [f'{head}{begun}[{at:.3f},"{least + spread * chance():.3f}"]]}}' for head in self._labels]
        else:
            label, low, names = {
                "rack_watts": ("rack", 40_000.0, [rack.name for rack in self._site.racks]),
                "loop_heat_watts": ("loop", 900_000.0, [loop.name for loop in self._site.loops]),
                "coolant_celsius": ("loop", 31.0, [loop.name for loop in self._site.loops]),
                "supply_watts": ("supply", 5e7, [supply.name for supply in self._site.supplies]),
            }[quantity]
            rows = [
                f'{{"metric":{{"{label}":"{name[5:]}"}},"values":[{begun}[{at:.3f},"{value}"]]}}'
                for name, value in ((name, low * (1 + 0.05 * chance())) for name in names)
            ]
        return (
            '{"status":"success","data":{"resultType":"matrix","result":[' + ",".join(rows) + "]}}"
        ).encode()


@dataclass(slots=True)
class Costs:
    """CPU seconds by what they were spent on, and what the process held after each period."""

    spent: dict[str, float] = field(default_factory=dict)
    readings: int = 0
    told: int = 0
    megabytes: list[float] = field(default_factory=list)

    @contextmanager
    def counting(self, what: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.spent[what] = self.spent.get(what, 0.0) + time.process_time() - began

    def move(self, one: str, other: str, seconds: float) -> None:
        """What was counted as one was another."""
        self.spent[one] -= seconds
        self.spent[other] = self.spent.get(other, 0.0) + seconds

    @property
    def total_seconds(self) -> float:
        return sum(self.spent.values())


class World:
    """Starts whatever it is asked to; what is decided goes into a real journal, on a disk."""

    def __init__(self, facility: Facility, journal: StepJournal) -> None:
        self._journal, self.journaled_seconds = journal, 0.0
        self.at = 1_800_000_000.0
        self.queue: list[Event] = []
        self.state = State(facility)
        self.policy = read_policy("default")

    def now(self) -> float:
        return self.at

    def events(self) -> list[Event]:
        queue, self.queue = self.queue, []
        return queue

    def apply(self, action: Action) -> None:
        if action.place is not None:
            self.queue.append(AttemptStarted(at=self.at, job=action.job, attempt=action.attempt))

    def sleep_until(self, at: float | None) -> None: ...

    def append(self, events: Sequence[Event], digest: Callable[[], str], decision: Decision) -> None:
        began = time.process_time()
        self._journal.append(events, digest, decision)
        self.journaled_seconds += time.process_time() - began

    def turn(self, *events: Event) -> Decision:
        self.queue += events
        return step(self, self.state, self.policy, self)

    def fill(self, jobs: int) -> int:
        """A job on so many nodes; those that found a place."""
        requests = [
            JobRequest(job=f"r{number}/train", run=f"r{number}", gpus=_GPUS, max_duration_seconds=360000.0)
            for number in range(jobs)
        ]
        self.turn(*(RunSubmitted(at=self.at, run=one.run, pipeline="bench", jobs=(one,)) for one in requests))
        self.turn()
        return len(self.state.holding)


def measure(nodes: int, periods: int, seed: int = 1) -> tuple[Costs, int]:
    """Take so many periods of readings; the first, in which everything is new, is not counted."""
    with TemporaryDirectory() as folder:
        with open_store(folder) as store:
            assert store.lease.try_acquire("bench", 36000.0) is not None
            return _measure(nodes, periods, seed, StepJournal(store.journal))


def _measure(nodes: int, periods: int, seed: int, journal: StepJournal) -> tuple[Costs, int]:
    facility = a_hall(nodes)
    (site,) = facility.sites
    source, changes, answers = PrometheusSource(site, site.sources[0]), Changes(), Answers(facility, seed)
    costs = Costs()
    world, running = World(facility, journal), 0
    for period in range(periods + 1):
        world.at += EVERY_SECONDS
        bodies = {one.quantity: answers.body(one.quantity, world.at - 3.0) for one in site.sources[0].series}
        if period == 1:
            running = world.fill(nodes // 2)
            costs = Costs()
        readings: list[Reading] = []
        with costs.counting("parsing"):
            for series in site.sources[0].series:
                readings += source.take(series, bodies[series.quantity], world.at)
        with costs.counting("telling"):
            told = changes.tell(Batch(0, "prometheus", "hall", world.at, readings))
        world.journaled_seconds = 0.0
        with costs.counting("folding and deciding"):
            world.turn(*told)
        costs.move("folding and deciding", "journaling", world.journaled_seconds)
        costs.readings += len(readings)
        costs.told += sum(len(event.readings) for event in told)
        del bodies, readings, told
        gc.collect()
        costs.megabytes.append(_resident_megabytes())
    return costs, running


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=10.0)
    asked = parser.parse_args()
    periods = round(60 * asked.minutes / EVERY_SECONDS)
    costs, running = measure(asked.nodes, periods)
    simulated = periods * EVERY_SECONDS
    print(
        f"{asked.nodes:,} nodes, {running:,} jobs, {costs.readings:,} readings in {simulated:g} s; "
        f"{costs.told:,} told"
    )
    for what, seconds in costs.spent.items():
        print(f"  {what:<22} {seconds / simulated:.3f} CPU seconds a second")
    print(f"  {'together':<22} {costs.total_seconds / simulated:.3f} of one core (bar: 1)")
    early, late = costs.megabytes[len(costs.megabytes) // 4], costs.megabytes[-1]
    print(f"  resident memory {early:,.0f} MB after a quarter, {late:,.0f} MB at the end")


if __name__ == "__main__":
    main()
