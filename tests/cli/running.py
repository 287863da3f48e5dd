"""A pipeline's folder, a state folder, and the real command line between them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattline.control import StepRecord, replay
from wattline.live import Home
from wattline.plane.session import Session
from wattline.state import ActionKind, Event, State
from wattline.state.account import Promised
from wattline.store.steps import read_steps

WATTLINE = Path(sys.executable).with_name("wattline")
PATIENCE_SECONDS = 120.0
MODEL = "model.npy"

# The bytes that it ends with depend on every step: one that is lost, or done twice, shows.
TRAIN = """
import os, time
import numpy as np
from wattline import train

settings = train.params()
weights = np.zeros(64)
rng = np.random.default_rng(7)
run = train.start(model={"weights": weights}, rng=rng)
for step in run.steps(settings["steps"]):
    weights += rng.normal(size=weights.size)
    weights *= 0.99
    run.log(loss=float(np.abs(weights).mean()))
    is_in_a_hurry = os.path.exists(settings.get("hurry", ""))
    until = time.monotonic() + (0.0 if is_in_a_hurry else settings["seconds"])
    while settings["busy"] and time.monotonic() < until:
        pass
    time.sleep(max(0.0, until - time.monotonic()))
np.save(run.out / "model.npy", weights)
run.report(loss=float(np.abs(weights).mean()))
"""
PREPARE = """
import pathlib, time
time.sleep(0.3)
pathlib.Path("out/prepared.txt").write_text("prepared\\n")
"""
EVALUATE = """
import pathlib, time
from wattline import train
time.sleep(0.3)
assert pathlib.Path("out/prepared.txt").read_text() == "prepared\\n"
train.report(size=pathlib.Path("out/model.npy").stat().st_size)
"""

# As the default policy, but nobody waits long for anything.
POLICY: dict[str, Any] = {
    "policy": "quick",
    "thresholds": {"restart_backoff": "0s", "settle": "1s", "clear_for": "2s", "reading_max_age": "30s"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command that has ended said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class Desk:
    """Where one test writes its pipeline and runs it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "pipeline"
        self.home = root / "home"
        self._hurry = root / "hurry"
        self.folder.mkdir(parents=True)
        self._started: list[subprocess.Popen[str]] = []

    def write(self, name: str, content: str | Mapping[str, Any]) -> Path:
        """A file beside the pipeline; a mapping is written as JSON, which is YAML too."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return path

    def pipeline(self, phases: Mapping[str, Any], **more: Any) -> Path:
        """A pipeline of these phases. One that is given as text is a script to be run."""
        documents = {}
        for name, phase in phases.items():
            if isinstance(phase, str):
                self.write(f"{name}.py", phase)
                phase = {"run": f"python {name}.py"}
            documents[name] = phase
        head = {"pipeline": "small", "model": "small", "owner": "ada", "project": "lab"}
        return self.write("wattline.yaml", head | {"phases": documents} | more)

    def training(
        self, *, steps: int, seconds: float, busy: bool = False, train: Mapping[str, Any] | None = None
    ) -> None:
        """Prepare, train and evaluate; a step takes `seconds` until told to hurry, all else about one."""
        self.params(steps=steps, seconds=seconds, busy=busy)
        for name, script in (("prepare", PREPARE), ("train", TRAIN), ("evaluate", EVALUATE)):
            self.write(f"{name}.py", script)
        phases = {
            "prepare": {"run": "python prepare.py"},
            "train": {
                "after": ["prepare"],
                "run": "python train.py",
                "checkpoint": {"every": "1s", "keep": 2},
                **(train or {}),
            },
            "evaluate": {"after": ["train"], "run": "python evaluate.py"},
        }
        self.pipeline(
            phases,
            params="params.json",
            gates=["loss <= 1e9", "size > 0"],
            release={"name": "small", "to": "staging"},
        )
        self.write("policy.yaml", POLICY)

    def params(self, *, steps: int, seconds: float, busy: bool = False) -> None:
        """What the training script is told."""
        settings = {"steps": steps, "seconds": seconds, "busy": busy, "hurry": str(self._hurry)}
        self.write("params.json", settings)

    def hurry(self) -> None:
        """From now on no step takes its time: what had to happen during training has been seen."""
        self._hurry.touch()

    def by_hand(self) -> str:
        """The hash of the model that the training script makes when nobody watches and nothing waits."""
        settings = json.loads((self.folder / "params.json").read_text()) | {"seconds": 0.0}
        alone = self.folder.parent / "alone"
        alone.mkdir()
        (alone / "params.json").write_text(json.dumps(settings))
        subprocess.run(
            [sys.executable, str(self.folder / "train.py")],
            cwd=alone,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        return hashlib.sha256((alone / "out" / MODEL).read_bytes()).hexdigest()

    def start(self, *more: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """`wattline run` of this folder's pipeline, with its policy where it has one."""
        policy = self.folder / "policy.yaml"
        known = ["--policy", str(policy)] if policy.exists() and "--policy" not in more else []
        process = subprocess.Popen(
            [str(WATTLINE), "run", str(self.folder / "wattline.yaml"), "--output", "json", *known, *more],
            env={**os.environ, "WATTLINE_HOME": str(self.home), "NO_COLOR": "1", **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def run(self, *more: str, environment: Mapping[str, str] | None = None) -> Ran:
        return end(self.start(*more, environment=environment))

    def close(self) -> None:
        """End what a test that failed left running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def found(self, pattern: str) -> bool:
        """Whether something of this name is in the state folder."""
        return any(self.home.glob(pattern))

    @contextmanager
    def session(self) -> Iterator[Session]:
        session = Session(Home(self.home))
        try:
            yield session
        finally:
            session.close()

    def state(self) -> State:
        with self.session() as session:
            assert session.state is not None
            return session.state

    def steps(self) -> list[StepRecord]:
        with self.session() as session:
            return [record for _, record in read_steps(session.store.journal)]

    def events(self) -> list[Event]:
        return [event for record in self.steps() for event in record.events]

    def actions(self, phase: str) -> list[ActionKind]:
        """What was decided about a phase, in order."""
        return [
            action.kind
            for record in self.steps()
            for action in record.decision.actions
            if action.job.endswith(f"/{phase}")
        ]


def end(process: subprocess.Popen[str], *signals: signal.Signals) -> Ran:
    """Wait for a command's end, after sending it these; whatever happened, nobody is shown a traceback."""
    for number in signals:
        process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert "Traceback" not in err, err
    return Ran(code=process.returncode, out=out, err=err)


def kill(process: subprocess.Popen[str]) -> None:
    """As the kernel does it when memory runs out; one that has just ended is left in peace."""
    process.kill()
    process.communicate()


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    """Poll with a deadline; a process that ends meanwhile is no reason to wait on."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if process is not None and process.poll() is not None and not holds():
            raise AssertionError(f"it ended with {process.returncode}: {process.communicate()[1]}")
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.005)


def held_by(gate: Path) -> str:
    """A script that ends once this file is there, and after two minutes in any case."""
    return (
        "import pathlib, time\n"
        f"gate, until = pathlib.Path({str(gate)!r}), time.monotonic() + 120\n"
        "while not gate.exists() and time.monotonic() < until:\n"
        "    time.sleep(0.02)\n"
    )


def model_of(ran: dict[str, Any]) -> str:
    """The hash of the model in a run's manifest."""
    manifest = json.loads(Path(ran["manifest"]["path"]).read_text())
    (found,) = (one["digest"]["sha256"] for one in manifest["subject"] if one["name"] == MODEL)
    return str(found)


def orphans(home: Path) -> list[str]:
    """Command lines of the processes that carry this state folder in their environment."""
    mark, left = os.fsencode(str(home)), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if mark in (entry / "environ").read_bytes():
                    left.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:  # gone meanwhile, or another user's
                continue
    return left


def assert_nothing_runs(desk: Desk) -> None:
    """Supervisors may need a moment to see that nobody holds their pipe any more."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left := orphans(desk.home):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def assert_nothing_is_left(desk: Desk) -> None:
    """No process, claim, promise or action without an answer; and the journal says how it came about."""
    assert_nothing_runs(desk)
    with desk.session() as session:
        session.store.journal.verify()
        assert list(session.store.inbox.take(10)) == []
        assert list(replay(read_steps(session.store.journal), session.documents)) == []
        state = session.state
        assert state is not None
        assert not state.holding
        assert not state.flights
        assert not state.ledger.claims
        assert not any(state.ledger.claimed)
        assert not any(account.promised != Promised() for account in state.accounts.values())
