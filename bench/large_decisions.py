"""How long do a decision and an admission take at 100,000 GPUs with 10,000 jobs waiting?

    python -m bench.large_decisions [--short]

Five sites of 20,000 GPUs in two pools each; 95 % or 30 % of the GPUs are taken. Each site is at its limit of
power somewhere else: at its feeds, at the PDUs of its rows, at its racks, in turn; so what waits does wait,
whatever GPUs are free. Waiting jobs are of 320 distinct watts per GPU, of one to 64 GPUs, of ten projects of
which six have quotas; two in five name a model of GPU, two in three a region where their data may be.
Before each sample some jobs end, as many arrive, and meters of racks, supplies, loops and GPUs say something
else. *decision* is the CPU time of `decide`, verdicts included; *turn* is all of
`step`: folding, deciding, the digest, settling. *admission* is one more job that is submitted and explained:
`explain`, with its dominant reason and its options. *first* is the one decision that knows nothing yet: all
10,000 jobs have just arrived.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.twin import yardstick
from wattline.control import step
from wattline.facility import Facility
from wattline.plane.collecting import collecting_between_turns
from wattline.policy import Explanation, decide, explain
from wattline.spec import FacilityDocument, Policy, build_facility, read_policy
from wattline.spec.policy import Quota, Team
from wattline.state import (
    Action,
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    Decision,
    Ending,
    Event,
    JobRequest,
    Measured,
    Place,
    Plant,
    ResourceKind,
    RunSubmitted,
    Snapshot,
    State,
)

DECISION_BAR_MS, ADMISSION_BAR_MS = 250.0, 10.0
FILLS = (0.95, 0.30)
SAMPLES = 200
WAITING = 10_000
DISTINCT_WATTS = 320
PROJECTS = tuple(f"team-{number}" for number in range(10))
_CLASSES = ("high-density-training", "checkpoint-heavy", "low-power-experiment")
_SIZES = (1, 1, 1, 2, 2, 4, 8, 8, 16, 64)
_MODELS = ((), (), (), ("H100",), ("A100",))
_REGIONS = ((), ("eu",), ("us",))
_ENDS, _READINGS = 20, 500
_MARGIN = 0.02  # the default policy's, of power


def a_large_facility(sites: int = 5, rows: int = 25) -> Facility:
    """Sites of so many rows of 25 racks with 32 GPUs each; every fifth row on a loop of its own."""
    document = {
        "facility": "large",
        "sites": {f"site-{number}": _site(number, rows) for number in range(sites)},
        "links": [],
    }
    return build_facility(FacilityDocument.model_validate(document), source="bench")


def _site(number: int, rows: int) -> dict[str, object]:
    halls = (rows + 4) // 5
    racks: dict[str, object] = {}
    for row in range(1, rows + 1):
        is_new = row % 5 not in (4, 0)
        gpu, other = ("H100", "2.2kW") if is_new else ("A100", "1.5kW")
        racks[f"r{row:02}x01..r{row:02}x25"] = {
            "row": row,
            "cap": "32kW" if is_new else "19kW",
            "power": [f"pdu-{row}a", f"pdu-{row}b"],
            "loop": f"cdu-{(row + 4) // 5}",
            "switch": f"leaf-{row}",
            "nodes": {"count": 4, "gpu": gpu, "gpus": 8, "cpus": 112, "other": other},
        }
    return {
        "region": ("eu", "us")[number % 2],
        "tariff": {"energy": 0.05 + 0.02 * number},
        "carbon": {"zone": "XX", "intensity": 100 + 50 * number},
        "pue": 1.1,
        "feeds": {"a": {"rating": "30MW"}, "b": {"rating": "30MW"}},
        "pdus": {
            f"pdu-{row}{feed}": {"feed": feed, "rating": "1MW"} for row in range(1, rows + 1) for feed in "ab"
        },
        "loops": {
            f"cdu-{hall}": {"kind": "direct-to-chip", "capacity": "5MW", "supply": "30C", "flow": "6500L/min"}
            for hall in range(1, halls + 1)
        },
        "racks": racks,
        "storage": {"name": "shared", "throughput": "400GB/s", "capacity": "50PB"},
        "telemetry": {"source": "emulated"},
    }


def a_policy_with_teams() -> Policy:
    """The default policy with quotas of six teams, wide enough to be counted and not to bind."""
    quota = Quota(gpu_hours=5e6, usd=5e7)
    teams = {project: Team(quota=quota) for project in PROJECTS[:6]}
    return read_policy("default").model_copy(update={"teams": teams})


@dataclass(slots=True)
class Large:
    """A world that starts whatever it is asked to, a journal that forgets, and a clock for what decides."""

    state: State
    policy: Policy
    chance: random.Random
    at: float = 4 * 86400.0
    numbers: int = 0
    queue: list[Event] = field(default_factory=list)
    decide_ms: float = 0.0
    started: int = 0

    def now(self) -> float:
        return self.at

    def events(self) -> list[Event]:
        queue, self.queue = self.queue, []
        return queue

    def apply(self, action: Action) -> None:
        if action.place is not None:
            self.queue.append(AttemptStarted(at=self.at, job=action.job, attempt=action.attempt))
        elif action.kind in (ActionKind.PAUSE, ActionKind.STOP):
            ending = Ending.PAUSED if action.kind is ActionKind.PAUSE else Ending.STOPPED
            attempt = self.state.jobs[action.job].attempt
            self.queue.append(AttemptEnded(at=self.at, job=action.job, attempt=attempt, ending=ending))

    def sleep_until(self, at: float | None) -> None:
        self.at = max(self.at, at or self.at)

    def append(self, events: object, digest: Callable[[], str], decision: Decision) -> None:  # noqa: ARG002
        digest()

    def timed(self, snapshot: Snapshot, policy: Policy) -> Decision:
        began = time.process_time()
        decision = decide(snapshot, policy)
        self.decide_ms = 1000 * (time.process_time() - began)
        self.started += sum(action.place is not None for action in decision.actions)
        return decision

    def turn(self, *events: Event) -> tuple[float, float]:
        """CPU milliseconds of the decision, and of the whole turn."""
        self.queue += events
        began = time.process_time()
        step(self, self.state, self.policy, self, self.timed)
        return self.decide_ms, 1000 * (time.process_time() - began)

    def request(self, *, long: bool = False) -> JobRequest:
        self.numbers += 1
        chance, gpus = self.chance, self.chance.choice(_SIZES)
        each_watts = 180.0 + round(500.0 / DISTINCT_WATTS * chance.randrange(DISTINCT_WATTS), 3)
        return JobRequest(
            job=f"r{self.numbers}/train",
            run=f"r{self.numbers}",
            project=chance.choice(PROJECTS),
            scheduling_class=chance.choice(_CLASSES),
            gpus=min(gpus, 8) if long else gpus,
            gpu_models=() if long else chance.choice(_MODELS),
            residency=() if long else chance.choice(_REGIONS),
            cpus=4.0,
            peak_watts=each_watts * (min(gpus, 8) if long else gpus),
            max_duration_seconds=chance.uniform(3600.0, 7 * 86400.0),
            checkpoints=True,
        )

    def submit(self, request: JobRequest) -> RunSubmitted:
        return RunSubmitted(
            at=self.at, run=request.run, pipeline="bench", project=request.project, jobs=(request,)
        )

    def end_some(self, count: int) -> list[Event]:
        """So many running jobs end, wherever they are."""
        running = list(self.state.holding)
        return [
            AttemptEnded(at=self.at, job=job, attempt=self.state.jobs[job].attempt, ending=Ending.SUCCEEDED)
            for job in self.chance.sample(running, min(count, len(running)))
        ]

    def read_some(self, count: int) -> Measured:
        """Meters that say something else, around three quarters of what is promised; all sites vouch."""
        plant, ledger, chance = self.state.plant, self.state.ledger, self.chance
        readings: list[tuple[str, str, float | None]] = []
        metered = _metered(plant)
        for number in chance.sample(metered, min(count, len(metered))):
            watts = ledger.promised[number] * chance.uniform(0.6, 0.9)
            readings.append((plant.resources[number].name, _QUANTITIES[plant.kinds[number]], watts))
        readings += [
            (spot.node.name, "gpu_celsius", chance.uniform(40.0, 70.0))
            for spot in chance.sample(plant.spots, min(count, len(plant.spots)))
        ]
        return Measured(at=self.at, readings=tuple(readings), unchanged=plant.site_names)


_QUANTITIES = {
    ResourceKind.RACK: "rack_watts",
    ResourceKind.SUPPLY: "supply_watts",
    ResourceKind.LOOP: "loop_heat_watts",
}


def _metered(plant: Plant) -> list[int]:
    return [number for number, kind in enumerate(plant.kinds) if kind in _QUANTITIES]


def fill(facility: Facility, share: float, seed: int = 0) -> Large:
    """A share of all GPUs taken by jobs that run, and everything read once."""
    chance = random.Random(seed)
    world = Large(State(facility), a_policy_with_teams(), chance)
    plant, events, actions = world.state.plant, list[Event](), list[Action]()
    for spot in plant.spots:
        free = sum(chance.random() < share for _ in range(spot.node.gpus))
        while free:
            request = world.request(long=True)
            gpus = min(request.gpus, free)
            free -= gpus
            peak = request.peak_watts or 0.0
            request = JobRequest(
                job=request.job,
                run=request.run,
                project=request.project,
                scheduling_class=request.scheduling_class,
                gpus=gpus,
                cpus=4.0,
                peak_watts=peak / request.gpus * gpus,
                max_duration_seconds=request.max_duration_seconds,
                checkpoints=True,
            )
            events.append(world.submit(request))
            place = Place(spot.site.name, ((spot.node.name, gpus),))
            actions.append(
                Action(id=request.job, kind=ActionKind.START, job=request.job, attempt=1, place=place)
            )
    world.state.fold(events)
    world.state.settle(Decision(at=world.at, actions=tuple(actions)))
    for action in actions:
        world.apply(action)
    world.state.fold([*world.events(), *_limits(world), world.read_some(0)])
    everything = [
        (plant.resources[number].name, _QUANTITIES[plant.kinds[number]], 0.75 * promised)
        for number in _metered(plant)
        for promised in (world.state.ledger.promised[number],)
    ]
    celsius = [(spot.node.name, "gpu_celsius", 50.0) for spot in plant.spots]
    world.state.fold([Measured(at=world.at, readings=(*everything, *celsius), unchanged=plant.site_names)])
    return world


def _limits(world: Large) -> list[Event]:
    """Caps that leave little: of the feeds at one site, of PDUs at the next, of racks at the third."""
    plant, promised, chance = world.state.plant, world.state.ledger.promised, world.chance
    readings: list[tuple[str, str, float | None]] = []
    for number, resource in enumerate(plant.resources):
        site = plant.site_number_of_resource[number]
        name = resource.name.rsplit("/", 1)[-1]
        if resource.kind is ResourceKind.SUPPLY and len(name) == 1 and site % 3 == 0:
            more_watts = 6000.0
        elif resource.kind is ResourceKind.SUPPLY and len(name) > 1 and site % 3 == 1:
            more_watts = 1500.0
        elif resource.kind is ResourceKind.RACK and site % 3 == 2:
            more_watts = 400.0
        else:
            continue
        cap = (promised[number] + chance.uniform(0.0, more_watts)) / (1.0 - _MARGIN)
        readings.append((resource.name, "cap_watts", cap))
    return [Measured(at=world.at, readings=tuple(readings), unchanged=plant.site_names)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one fill: CPU milliseconds of each sample."""

    gpus: int
    taken: float
    waiting: int
    shapes: int
    distinct_watts: int
    started: int
    first_ms: float
    decisions_ms: Sequence[float]
    turns_ms: Sequence[float]
    admissions_ms: Sequence[float]
    options: Sequence[int]  # of each admission
    yard_ms: float  # of a fixed piece of Python, beside it


def measure(world: Large, samples: int, waiting: int) -> Figures:
    state = world.state
    arrivals = [world.submit(world.request()) for _ in range(waiting)]
    first_ms, _ = world.turn(*arrivals)
    missing = waiting - sum(map(len, state.waiting.values()))
    world.turn(*(world.submit(world.request()) for _ in range(max(0, missing))))
    decisions, turns, admissions, options = list[float](), list[float](), list[float](), list[int]()
    yard_seconds = yardstick()
    world.started = 0
    with collecting_between_turns() as collect:  # as a server does
        for _ in range(samples):
            world.at += 10.0
            ends = world.end_some(_ENDS)
            events = [*ends, *(world.submit(world.request()) for _ in ends), world.read_some(_READINGS)]
            decision_ms, turn_ms = world.turn(*events)
            decisions.append(decision_ms)
            turns.append(turn_ms)
            explanation, admission_ms = admit_one(world)
            admissions.append(admission_ms)
            options.append(len(explanation.options))
            collect()
    queued = [job for queue in state.waiting.values() for _, _, job in queue]
    requests = [state.jobs[job].request for job in queued]
    taken = sum(spot.node.gpus for spot in state.plant.spots) - sum(state.ledger.gpus_free)
    return Figures(
        gpus=state.plant.facility.gpus,
        taken=taken / state.plant.facility.gpus,
        waiting=len(queued),
        shapes=len(state.waiting),
        distinct_watts=len({(request.peak_watts or 0.0) / max(1, request.gpus) for request in requests}),
        started=world.started,
        first_ms=first_ms,
        decisions_ms=decisions,
        turns_ms=turns,
        admissions_ms=admissions,
        options=options,
        yard_ms=500.0 * (yard_seconds + yardstick()),
    )


def admit_one(world: Large) -> tuple[Explanation, float]:
    """One more job, which waits, and why: CPU milliseconds of the answer."""
    request = world.request()
    world.state.fold([world.submit(request)])
    began = time.process_time()
    explanation = explain(Snapshot(world.state, world.at), world.policy, request.job)
    return explanation, 1000 * (time.process_time() - began)


def p99(values: Sequence[float]) -> float:
    return sorted(values)[max(0, -(-99 * len(values) // 100) - 1)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="8,000 GPUs, 800 waiting, 20 samples")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    asked = parser.parse_args(arguments)
    facility = a_large_facility(2, 5) if asked.short else a_large_facility()
    samples, waiting = (20, 800) if asked.short else (asked.samples, WAITING)
    missed = 0
    print(f"{'':<30}{'bar ms':>8}{'p50 ms':>9}{'p99 ms':>9}{'worst':>9}")
    for share in FILLS:
        figures = measure(fill(facility, share), samples, waiting)
        print(
            f"{figures.gpus:,} GPUs, {figures.taken:.0%} taken, {figures.waiting:,} waiting in "
            f"{figures.shapes:,} shapes, {figures.distinct_watts} distinct watts; {figures.started} started; "
            f"first {figures.first_ms:,.0f} ms; yard {figures.yard_ms:.0f} ms"
        )
        with_three = sum(count >= 3 for count in figures.options) / len(figures.options)
        mean, none = statistics.mean(figures.options), figures.options.count(0)
        print(f"  {mean:.2f} options each, three or more for {with_three:.0%}, none for {none}")
        rows = (
            ("decision", DECISION_BAR_MS, figures.decisions_ms),
            ("turn", None, figures.turns_ms),
            ("admission", ADMISSION_BAR_MS, figures.admissions_ms),
        )
        for name, bar, values in rows:
            word = "" if bar is None else "met" if p99(values) < bar else "missed"
            missed += word == "missed"
            print(
                f"  {name:<28}{'' if bar is None else f'{bar:g}':>8}{statistics.median(values):>9.2f}"
                f"{p99(values):>9.2f}{max(values):>9.2f} {word}",
                flush=True,
            )
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
