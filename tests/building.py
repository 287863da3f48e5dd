"""Small worlds to ask questions of: a facility, a job, a policy, and a hall where they meet.

Numbers are round on purpose: a GPU draws 400 W at its limit and nothing when idle, so eight of them take
3200 W of everything above them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wattline.facility import (
    Cloud,
    CoolingKind,
    Device,
    Facility,
    Link,
    Loop,
    Node,
    Rack,
    Site,
    Sleep,
    Storage,
    Supply,
    TrafficClass,
)
from wattline.policy import decide
from wattline.spec import Policy, Rung, RungDocument
from wattline.state import (
    Acknowledged,
    Action,
    ActionFailed,
    ActionKind,
    Adopted,
    Asked,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Decision,
    Ending,
    Event,
    Job,
    JobRequest,
    JobState,
    Measured,
    NodeMode,
    NodeSlept,
    NodeWoke,
    RunSubmitted,
    Snapshot,
    State,
    Usage,
    claim_of,
)
from wattline.state.resting import saved_amounts

GPU_WATTS = 400.0
MONDAY = 4 * 86400.0  # 1970-01-05 00:00 UTC


def a_device(name: str = "A100", **changes: Any) -> Device:
    figures: dict[str, Any] = {
        "limit_watts": GPU_WATTS,
        "least_limit_watts": 100.0,
        "idle_watts": 0.0,
        "throttle_celsius": 85.0,
        "slowdown_celsius": 89.0,
        "shutdown_celsius": 92.0,
        "kelvin_per_watt_air": 0.1,
        "kelvin_per_watt_liquid": 0.05,
        "usd_per_hour": 1.0,
        "sure": "assumed",
    }
    return Device(name=name, **(figures | changes))


def a_site(
    name: str = "zurich",
    *,
    racks: int = 1,
    nodes: int = 2,
    gpus: int = 8,
    cpus: int = 64,
    device: Device | None = None,
    rack_cap_watts: float = 1e6,
    feeds_watts: Sequence[float] = (1e9,),
    redundant: bool = False,
    loops: int = 1,
    loop_watts: float = 1e9,
    supply_celsius: float = 20.0,
    approach_kelvin: float = 10.0,
    time_constant_seconds: float = 300.0,
    storage_bytes_per_second: float = 1e12,
    region: str = "eu",
    usd_per_kwh: float = 0.1,
    telemetry: str = "nvml",
    other_watts: float = 0.0,
    sleep: Sleep | None = None,
) -> Site:
    """One hall; its racks take turns on its loops.

    `nvml` meters no racks, so only claims count; `emulated` meters everything.
    """
    kind = device or a_device()
    loop_names = [f"{name}/loop", *(f"{name}/loop-{number}" for number in range(2, loops + 1))]
    feeds = tuple(
        Supply(name=f"{name}/feed-{letter}", rating_watts=watts, continuous_fraction=1.0)
        for letter, watts in zip("abcd", feeds_watts, strict=False)
    )
    return Site(
        name=name,
        region=region,
        supplies=feeds,
        loops=tuple(
            Loop(
                name=loop,
                kind=CoolingKind.AIR,
                capacity_watts=loop_watts,
                supply_celsius=supply_celsius,
                approach_kelvin=approach_kelvin,
                time_constant_seconds=time_constant_seconds,
            )
            for loop in loop_names
        ),
        racks=tuple(
            Rack(
                name=f"{name}/r{rack}",
                row=f"{name}/row",
                cap_watts=rack_cap_watts,
                supplies=tuple(feed.name for feed in feeds),
                redundant=redundant,
                loop=loop_names[(rack - 1) % loops],
                switch=f"{name}/r{rack}",
                nodes=tuple(
                    Node(
                        name=f"{name}/r{rack}-n{node}",
                        rack=f"{name}/r{rack}",
                        device=kind,
                        gpus=gpus,
                        cpus=cpus,
                        other_watts=other_watts,
                    )
                    for node in range(1, nodes + 1)
                ),
            )
            for rack in range(1, racks + 1)
        ),
        storage=Storage(name=f"{name}/scratch", throughput_bytes_per_second=storage_bytes_per_second),
        usd_per_kwh=usd_per_kwh,
        carbon_zone="XX",
        grams_co2_per_kwh=100.0,
        pue=1.0,
        telemetry=telemetry,
        engine="local",
        sleep=sleep,
    )


def a_cloud(
    name: str = "cloud",
    *,
    machines: int = 2,
    gpus: int = 8,
    cpus: int = 64,
    usd_per_gpu_hour: float = 3.0,
    region: str = "eu",
    device: Device | None = None,
    **terms: Any,
) -> Site:
    """A region of rented machines: 3 USD for a GPU-hour, nothing for what leaves it, nothing taken back."""
    there = a_site(
        name,
        nodes=machines,
        gpus=gpus,
        cpus=cpus,
        region=region,
        device=replace(device or a_device(), usd_per_hour=usd_per_gpu_hour),
        usd_per_kwh=0.0,
        telemetry="none",
    )
    cloud = Cloud(max_gpus=machines * gpus, usd_per_gpu_hour=usd_per_gpu_hour, **terms)
    return replace(there, cloud=cloud)


def a_link(
    between: tuple[str, str], *, checkpoint_bits_per_second: float = 1e9, usd_per_gigabyte: float = 0.02
) -> Link:
    """Half of it is for checkpoints."""
    return Link(
        name="-".join(between),
        between=between,
        bits_per_second=2 * checkpoint_bits_per_second,
        latency_seconds=0.01,
        shares={TrafficClass.CHECKPOINT: 0.5, TrafficClass.CONTROL: 0.5},
        usd_per_gigabyte=usd_per_gigabyte,
    )


def a_facility(*sites: Site, links: Sequence[Link] = ()) -> Facility:
    return Facility(name="test", sites=sites or (a_site(),), links=tuple(links))


def a_job(name: str = "r1/train", **changes: Any) -> JobRequest:
    """A request for one GPU unless said otherwise; its run is what stands before the slash."""
    run, _, phase = name.partition("/")
    asked: dict[str, Any] = {"gpus": 1, "project": "nlp", "owner": "nlp", "model": "tiny"}
    return JobRequest(job=name, run=run, phase=phase, **(asked | changes))


def a_ladder(*rungs: dict[str, object]) -> tuple[Rung, ...]:
    """Rungs as people write them: `a_ladder({"cap_power": "70%"}, {"pause": "2h"})`."""
    return tuple(RungDocument.model_validate(rung).rung() for rung in rungs)


def a_policy(**document: Any) -> Policy:
    """A policy as people write it."""
    return Policy.model_validate(document)


def adopted(at: float = 0.0, *, facility: str = "f", policy: str = "p") -> Adopted:
    return Adopted(
        at=at, facility="test", facility_sha256=facility, policy="test", policy_sha256=policy, code="test"
    )


def kinds(decision: Decision) -> list[tuple[str, str]]:
    """What was decided, in short: `[("start", "r1/train")]`."""
    return [(action.kind.value, action.job) for action in decision.actions]


class Hall:
    """A state with a clock and verbs: what a test says happens, and what is then decided."""

    def __init__(self, facility: Facility, policy: Policy, at: float) -> None:
        self.state = State(facility)
        self.policy = policy
        self.at = at
        self.decisions: list[Decision] = []

    def fold(self, *events: Event) -> None:
        self.state.fold(events)

    def submit(self, *requests: JobRequest) -> None:
        """One submission for each run that the requests name."""
        for run in dict.fromkeys(request.run for request in requests):
            jobs = tuple(request for request in requests if request.run == run)
            self.fold(RunSubmitted(at=self.at, run=run, pipeline="p", jobs=jobs, project=jobs[0].project))

    def snapshot(self) -> Snapshot:
        return Snapshot(self.state, self.at)

    def decide(self) -> Decision:
        """Decide and take it as promised."""
        decision = decide(self.snapshot(), self.policy)
        self.state.settle(decision)
        self.decisions.append(decision)
        return decision

    def wait(self, seconds: float) -> None:
        self.at += seconds

    def read(self, subject: str, quantity: str, value: float) -> None:
        self.fold(Measured(at=self.at, readings=((subject, quantity, value),)))

    def started(self, job: str) -> None:
        self.fold(AttemptStarted(at=self.at, job=job, attempt=self.state.jobs[job].attempt))

    def ended(self, job: str, ending: Ending = Ending.SUCCEEDED, usage: Usage = Usage()) -> None:
        attempt = self.state.jobs[job].attempt
        self.fold(AttemptEnded(at=self.at, job=job, attempt=attempt, ending=ending, usage=usage))

    def saved(self, job: str, *, site: str = "zurich", step: int = 1) -> None:
        attempt = self.state.jobs[job].attempt
        self.fold(CheckpointSaved(at=self.at, job=job, attempt=attempt, step=step, site=site))

    def asked(self, job: str, want: str) -> None:
        self.fold(Asked(at=self.at, job=job, want=want, actor="ada"))

    def failed(self, action: Action, say: str = "no", *, unreached: bool = False) -> None:
        self.fold(ActionFailed(at=self.at, action=action.id, say=say, unreached=unreached))

    def obey(self, decision: Decision) -> None:
        """Answer every action of a decision as a willing facility would."""
        for action in decision.actions:
            self.obey_one(action)

    def obey_one(self, action: Action) -> None:
        if action.kind in (ActionKind.CAP_POWER, ActionKind.SHRINK_BATCH):
            self.fold(Acknowledged(at=self.at, action=action.id))
        elif action.kind is ActionKind.PAUSE:
            self.ended(action.job, Ending.PAUSED)
        elif action.kind is ActionKind.STOP and self.state.jobs[action.job].state is JobState.STOPPING:
            self.ended(action.job, Ending.STOPPED)
        elif action.kind is ActionKind.SLEEP:
            self.fold(NodeSlept(at=self.at, node=action.node, action=action.id))
        elif action.kind is ActionKind.WAKE:
            self.fold(NodeWoke(at=self.at, node=action.node, action=action.id))
        elif action.place is not None:
            self.started(action.job)

    def run(self, *requests: JobRequest) -> None:
        """Submit, decide and start; every one of them must fit."""
        self.submit(*requests)
        self.obey(self.decide())
        for request in requests:
            assert self.job(request.job).state is JobState.RUNNING, self.job(request.job)

    def job(self, name: str = "r1/train") -> Job:
        return self.state.jobs[name]


def a_world(
    *sites: Site, links: Sequence[Link] = (), policy: Policy | None = None, at: float = MONDAY
) -> Hall:
    return Hall(a_facility(*sites, links=links), policy or a_policy(), at)


def assert_ledger_is_true(state: State) -> None:
    """What is claimed follows from who holds, and from nothing else."""
    ledger, plant = state.ledger, state.plant
    claimed = [0] * len(plant.resources)
    free = [spot.node.gpus for spot in plant.spots]
    millicpus = [1000 * spot.node.cpus for spot in plant.spots]
    for job_id in state.holding:
        job = state.jobs[job_id]
        assert job.place is not None
        flights = [state.flights[action].action for action in state.flying.get(job_id, ())]
        raised = [flight.fraction for flight in flights if flight.kind is ActionKind.CAP_POWER]
        claim = claim_of(job.request, job.place, plant, max([job.power_fraction, *raised]))
        for resource, amount in claim.amounts:
            claimed[resource] += amount
        for node, gpus in claim.nodes:
            free[node] -= gpus
        millicpus[claim.nodes[0][0]] -= claim.millicpus
    assert ledger.claimed == claimed
    assert all(0 <= left <= spot.node.gpus for left, spot in zip(free, plant.spots, strict=True))
    free = [max(0, left - ledger.others.get(node, 0)) for node, left in enumerate(free)]
    assert ledger.gpus_free == free
    assert ledger.millicpus_free == millicpus
    assert all(0 <= left <= 1000 * spot.node.cpus for left, spot in zip(millicpus, plant.spots, strict=True))
    for pool in range(len(plant.pools)):
        assert ledger.free_in_pool[pool] == sum(
            free[node]
            for node, spot in enumerate(plant.spots)
            if spot.pool == pool and node not in ledger.down
        )
        for left in range(plant.biggest_of_pool[pool] + 1):
            listed = ledger.nodes_with(pool, left)
            assert listed == sorted(listed)
            assert all(ledger.gpus_free[node] == left for node in listed)
    assert sum(
        len(ledger.nodes_with(pool, left))
        for pool in range(len(plant.pools))
        for left in range(plant.biggest_of_pool[pool] + 1)
    ) == len(plant.spots) - len(ledger.down)
    assert_rest_is_true(state)


def assert_rest_is_true(state: State) -> None:
    """Nobody is on a node that rests; who idles follows from who holds; and what sleeps saves its watts."""
    resting, ledger, plant = state.resting, state.ledger, state.plant
    saved: dict[int, int] = {}
    for node, can_sleep in enumerate(resting.can_sleep):
        is_idle = node in resting.idle[plant.spots[node].pool]
        assert is_idle == (can_sleep and resting.is_awake(node) and not ledger.jobs_at.get(node))
        if not resting.is_awake(node):
            assert node in ledger.down
            assert not ledger.jobs_at.get(node)
    for node in resting.modes[NodeMode.ASLEEP]:
        for resource, watts in saved_amounts(plant, node):
            saved[resource] = saved.get(resource, 0) + watts
    assert {one: watts for one, watts in ledger.saved.items() if watts} == {
        one: watts for one, watts in saved.items() if watts
    }
    for pool in resting.idle:
        assert list(pool.values()) == sorted(pool.values())
