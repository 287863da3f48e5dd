"""What commands that only look are tried on: a pipeline that really ran, and journals written by hand."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattline.live import Home
from wattline.plane.session import Session
from wattline.policy import decide
from wattline.state import Decision, Event, JobRequest, RunSubmitted, Snapshot
from wattline.store.steps import StepJournal

COMMAND = [sys.executable, "-c", "from wattline.cli import main; main()"]

TRAIN = """
import numpy as np
from wattline import train

weights = {"w": np.zeros(4)}
run = train.start(model=weights)
for step in run.steps(6):
    weights["w"] += 1
    run.log(loss=1.0 / (step + 1))
print("\\x1b[31mtrained\\x1b[0m\\r100 %", flush=True)
np.save(run.out / "weights.npy", weights["w"])
run.report(final_loss=0.125)
"""
PIPELINE = """\
pipeline: small
model: small
owner: ada
project: nlp
data:
  - {name: words, path: data/words.txt}
phases:
  prepare: {run: echo ready}
  train:
    after: [prepare]
    run: python train.py
    resources: {gpus: 1}
    constraints: {max_duration: 5min}
    checkpoint: {every: 1s}
gates: [final_loss <= 0.2]
release: {name: small, to: staging, approval: required}
"""
# Without meters only claims count: a journal without readings is enough.
DESK = """\
facility: desk
sites:
  here:
    region: eu
    tariff: {energy: 0.2}
    carbon: {zone: DE, intensity: 300}
    feeds: {wall: {rating: 2kW}}
    loops: {room: {kind: air, capacity: 2kW, supply: 22C}}
    racks:
      r1: {cap: 1kW, power: [wall], loop: room, nodes: {gpu: A100, gpus: 1, cpus: 8, other: 100W}}
    storage: {throughput: 1GB/s}
    telemetry: {source: none}
  there:
    region: eu
    tariff: {energy: 0.2}
    carbon: {zone: DE, intensity: 300}
    feeds: {wall: {rating: 2kW}}
    loops: {room: {kind: air, capacity: 2kW, supply: 22C}}
    racks:
      r1: {cap: 1kW, power: [wall], loop: room, nodes: {gpu: A100, gpus: 1, cpus: 8, other: 100W}}
    storage: {throughput: 1GB/s}
    telemetry: {source: none}
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Wattline = Callable[..., Outcome]


class Writing:
    """Writes a journal as a conductor would, step by step, without running anything."""

    def __init__(self, root: Path) -> None:
        facility = root.parent / "desk.yaml"
        facility.write_text(DESK)
        self.reopen(root)
        digests = self.session.keep_facility(facility), self.session.keep_policy("default")
        self.step(self.session.adopt(*digests, self.now))

    def reopen(self, root: Path) -> None:
        """Go on with a journal, also from another thread."""
        self.session = Session(Home(root))
        assert self.session.become_writer()
        self.now = max(time.time() - 600, self.session.state.at if self.session.state else 0.0)

    def step(self, *events: Event, decision: Decision | None = None) -> None:
        state = self.session.state
        assert state is not None
        self.now += 1
        state.fold(events)
        made = decision or Decision(at=self.now)
        StepJournal(self.session.store.journal).append(events, state.digest, made)
        state.settle(made)

    def submit(self, run: str, phases: Sequence[str] = ("train",)) -> None:
        jobs = [
            JobRequest(
                job=f"{run}/{phase}",
                run=run,
                phase=phase,
                project="nlp",
                gpus=1,
                checkpoints=True,
                max_duration_seconds=3600,
            )
            for phase in phases
        ]
        self.step(
            RunSubmitted(at=self.now, actor="ada", project="nlp", run=run, pipeline="small", jobs=tuple(jobs))
        )

    def decide(self) -> None:
        """What the policy says now, journaled and taken as done."""
        assert self.session.state is not None
        self.now += 1
        self.step(decision=decide(Snapshot(self.session.state, self.now), self.session.policy()))
