"""What every world does with an action: one suite for real processes, for Slurm and for the twin."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from building import a_facility, a_policy, a_site
from cli.running import TRAIN
from slurm_cluster import ON_SLURM, SlurmCluster
from wattline.actuators import EmulatedActuator
from wattline.control import step
from wattline.control.ports import World
from wattline.engines import Engine, LocalEngine
from wattline.engines.slurm import SlurmClient, SlurmEngine, SlurmOptions
from wattline.facility import Facility
from wattline.live import Home, LiveWorld, Meters
from wattline.policy.naming import next_action
from wattline.release import KeptGoods, bundle_source, describe_source
from wattline.spec import Fault, read_pipeline
from wattline.state import (
    Acknowledged,
    Action,
    ActionKind,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Decision,
    Ending,
    Event,
    JobRequest,
    JobState,
    Place,
    Plant,
    RunSubmitted,
    State,
    requests_of,
)
from wattline.store import ObjectStore
from wattline.telemetry import EmulatedFacility
from wattline.twin.meters import Meters as TwinMeters
from wattline.twin.truth import Truth
from wattline.twin.workload import Arrival
from wattline.twin.world import TwinWorld

JOB = "r1/train"
PLACE = Place("hall", (("hall/r1-n2", 4),))
PATIENCE_SECONDS = 60.0
SHORT, LONG = 20, 1_000_000  # steps


class Stage:
    """A world, the state that follows it, and decisions that are told instead of taken."""

    def __init__(
        self,
        facility: Facility,
        make: Callable[[State], World],
        home: Path | None = None,
        cluster: SlurmCluster | None = None,
    ) -> None:
        self.state = State(facility)
        self.world = make(self.state)
        self._home, self._cluster = home, cluster
        self.told: list[Event] = []
        self.until(lambda: JOB in self.state.jobs)

    def append(self, events: Sequence[Event], digest: Callable[[], str], decision: Decision) -> None:
        self.told += events

    def turn(self, *actions: Action) -> None:
        step(
            self.world,
            self.state,
            a_policy(),
            self,
            lambda snapshot, _: Decision(at=snapshot.at, actions=actions),
        )

    def do(self, kind: ActionKind, *, fraction: float = 1.0) -> Action:
        place = PLACE if kind in (ActionKind.START, ActionKind.RESUME) else None
        action = next_action(self.state.jobs[JOB], kind, place=place, fraction=fraction)
        self.turn(action)
        return action

    @property
    def is_local(self) -> bool:
        return self._home is not None and self._cluster is None

    def until(self, happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        self.turn()
        while not happened():
            assert time.monotonic() < deadline, self.told
            self.world.sleep_until(self.world.now() + 5.0)
            self.turn()

    def until_state(self, state: JobState) -> None:
        self.until(lambda: self.state.jobs[JOB].state is state)

    def start(self) -> None:
        self.do(ActionKind.START)
        self.until_state(JobState.RUNNING)

    @contextmanager
    def machine_lost(self) -> Iterator[None]:
        """The machine of the first attempt is gone; in the twin a fault sees to that by itself."""
        if self._cluster is not None:
            self._cluster.lose("n2")
            try:
                yield
            finally:
                self._cluster.bring_back("n2")
            return
        if self._home is not None:
            (started,) = self._home.glob("runs/*/train/1/started.json")
            os.kill(json.loads(started.read_text())["supervisor_pid"], signal.SIGKILL)
        yield

    @contextmanager
    def engine_down(self) -> Iterator[None]:
        """What runs the work cannot be asked; of the local engine and the twin nobody is away alone."""
        if self._cluster is not None:
            self._cluster.halt("slurmctld")
        try:
            yield
        finally:
            if self._cluster is not None:
                self._cluster.start("slurmctld")

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.told)

    def endings(self) -> list[tuple[int, Ending]]:
        return [(event.attempt, event.ending) for event in self.told if isinstance(event, AttemptEnded)]


Stages = Callable[[int], Stage]
_BREAKS = Fault.model_validate({"name": "f", "at": {"after": "100s"}, "rack": "hall/r1", "rating": "0%"})


@pytest.fixture(params=["twin", "local", pytest.param("slurm", marks=ON_SLURM)])
def on_stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stages]:
    """Makes a stage with one job of so many steps, which waits there."""
    facility = a_facility(a_site("hall", cpus=16, telemetry="emulated"))
    live: list[LiveWorld] = []
    cluster: SlurmCluster | None = request.getfixturevalue("slurm") if request.param == "slurm" else None

    def an_engine() -> Engine:
        if cluster is None:
            return LocalEngine()
        options = SlurmOptions(hosts={"hall/r1-n1": "n1", "hall/r1-n2": "n2"})
        return SlurmEngine(options, SlurmClient(cluster.environment))

    def make(steps: int) -> Stage:
        if request.param == "twin":
            faults = (_BREAKS,) if request.node.originalname.endswith("machine_is_lost") else ()
            return Stage(facility, lambda _: _a_twin(facility, steps, faults))
        world = partial(_a_live_world, engine=an_engine(), root=tmp_path, steps=steps)
        stage = Stage(facility, world, tmp_path / "home", cluster)
        assert isinstance(stage.world, LiveWorld)
        live.append(stage.world)
        return stage

    yield make
    for world in live:
        world.close()


def _a_twin(facility: Facility, steps: int, faults: Sequence[Fault]) -> TwinWorld:
    plant = Plant(facility)
    truth = Truth(plant, seed=0, exact=True, at=0.0, faults=faults)
    request = JobRequest(job=JOB, run="r1", phase="train", gpus=4, checkpoints=True)
    arrival = Arrival(at=1.0, request=request, work_seconds=float(steps), utilisation=0.9)
    meters = TwinMeters(truth, plant, 0, exact=True)
    return TwinWorld(plant, iter([arrival]), truth, meters, begins_at=0.0, forget=False)


def _a_live_world(state: State, engine: Engine, root: Path, steps: int) -> LiveWorld:
    folder, home = root / "pipeline", Home(root / "home").ensure()
    folder.mkdir()
    (folder / "params.json").write_text(json.dumps({"steps": steps, "seconds": 0.02, "busy": False}))
    (folder / "train.py").write_text(TRAIN)
    phase = {"run": "python train.py", "resources": {"gpus": 4}, "checkpoint": {"every": "1s", "keep": 2}}
    head = {"pipeline": "p", "model": "m", "owner": "o", "project": "q", "params": "params.json"}
    (folder / "wattline.yaml").write_text(json.dumps(head | {"phases": {"train": phase}}))
    objects = ObjectStore(home.objects)
    pipeline = read_pipeline(folder / "wattline.yaml")
    bundle = bundle_source(folder, objects, exclude=[])
    kept = objects.put_file(folder / "wattline.yaml")
    documents = describe_source(str(kept), str(bundle.digest), folder, {})
    jobs = requests_of(pipeline, "r1")
    waiting: list[Event] = [
        RunSubmitted(at=time.time(), run="r1", pipeline="p", jobs=jobs, documents=documents)
    ]
    emulated = EmulatedFacility(state.plant.facility, (), 0, time.time())

    def requests() -> list[Event]:
        told = list(waiting)
        waiting.clear()
        return told

    return LiveWorld(
        home=home,
        state=state,
        engine=engine,
        actuator=EmulatedActuator(emulated),
        meters=Meters(emulated, engine, None),
        goods=KeptGoods(objects),
        requests=requests,
    )


def test_a_job_that_is_started_runs_to_its_end(on_stage: Stages) -> None:
    stage = on_stage(SHORT)
    stage.start()
    stage.until_state(JobState.SUCCEEDED)
    assert stage.count(AttemptStarted) == 1
    assert stage.endings() == [(1, Ending.SUCCEEDED)]
    assert not stage.state.flights
    assert not stage.state.ledger.claims


def test_an_action_that_is_applied_twice_is_done_once(on_stage: Stages) -> None:
    stage = on_stage(SHORT)
    action = stage.do(ActionKind.START)
    stage.world.apply(action)
    stage.until_state(JobState.SUCCEEDED)
    assert stage.count(AttemptStarted) == 1


def test_a_job_that_is_cancelled_ends_and_gives_back_what_it_held(on_stage: Stages) -> None:
    stage = on_stage(LONG)
    stage.start()
    stage.do(ActionKind.STOP)
    stage.until(lambda: bool(stage.endings()))
    assert stage.endings() == [(1, Ending.STOPPED)]
    assert not stage.state.ledger.claims


def test_a_paused_job_has_saved_and_goes_on_as_its_next_attempt(on_stage: Stages) -> None:
    stage = on_stage(LONG)
    stage.start()
    stage.do(ActionKind.PAUSE)
    stage.until_state(JobState.PAUSED)
    assert stage.endings() == [(1, Ending.PAUSED)]
    assert stage.count(CheckpointSaved) >= 1
    assert stage.state.jobs[JOB].saved is not None
    assert not stage.state.ledger.claims
    stage.do(ActionKind.RESUME)
    stage.until_state(JobState.RUNNING)
    started = [event.attempt for event in stage.told if isinstance(event, AttemptStarted)]
    assert started == [1, 2]


def test_a_cap_is_answered_and_holds(on_stage: Stages) -> None:
    stage = on_stage(LONG)
    stage.start()
    action = stage.do(ActionKind.CAP_POWER, fraction=0.6)
    stage.until(lambda: stage.count(Acknowledged) >= 1)
    assert action.id not in stage.state.flights
    assert stage.state.jobs[JOB].power_fraction == 0.6


def test_a_job_gives_back_what_it_held_when_its_machine_is_lost(on_stage: Stages) -> None:
    stage = on_stage(LONG)
    stage.start()
    with stage.machine_lost():
        stage.until(lambda: bool(stage.endings()))
    ((attempt, ending),) = stage.endings()
    # The local engine cannot tell a machine that is lost from a command that killed its own supervisor.
    assert attempt == 1
    assert ending is (Ending.FAILED if stage.is_local else Ending.LOST)
    assert not stage.state.ledger.claims
    assert not stage.state.flights


@pytest.mark.parametrize("kind", [ActionKind.PAUSE, ActionKind.CAP_POWER, ActionKind.SHRINK_BATCH])
def test_a_command_to_a_job_that_never_began_changes_nothing(on_stage: Stages, kind: ActionKind) -> None:
    stage = on_stage(SHORT)
    job = stage.state.jobs[JOB]
    stage.world.apply(Action(id="a-1", kind=kind, job=JOB, attempt=9, fraction=0.5))
    for _ in range(3):
        stage.world.sleep_until(stage.world.now() + 0.1)
        stage.turn()
    assert stage.count(Acknowledged) == stage.count(AttemptStarted) == stage.count(AttemptEnded) == 0
    assert stage.state.jobs[JOB].state is job.state
    stage.start()
    stage.until_state(JobState.SUCCEEDED)


def test_an_engine_that_is_away_for_a_while_loses_nothing(on_stage: Stages) -> None:
    stage = on_stage(200)
    stage.start()
    with stage.engine_down():
        for _ in range(20):
            stage.world.sleep_until(stage.world.now() + 0.1)
            stage.turn()
    stage.until_state(JobState.SUCCEEDED)
    assert stage.endings() == [(1, Ending.SUCCEEDED)]
    assert stage.count(AttemptStarted) == 1
