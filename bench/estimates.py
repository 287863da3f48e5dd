"""How good are estimates, of a cluster's jobs and of a pipeline's own runs?

    python -m bench.estimates [--quick]

Philly: the trace is replayed on philly-800 by the default policy, which says when each job begins and ends
there. Jobs of the second half are estimated when they are submitted, from those that have ended by then and
nothing else. The plain quantiles by cluster and GPUs are of the first half, and of all that have ended.

Recorded runs: `wattline run` runs a small pipeline again and again with other steps, in a state folder of its
own; each run is estimated from those before it. The quick form is too short for the bars.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.twin import PHILLY, SKIP_DAYS
from wattline.checks.estimate import Compared, gather_runs, look_back
from wattline.control import decode_step
from wattline.live import Home
from wattline.plane.session import open_session
from wattline.spec import read_facility, read_policy
from wattline.state import AttemptEnded, AttemptStarted
from wattline.twin.experience import P90, Experience, group_of
from wattline.twin.history import Group
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.traces import TraceJob, read_trace
from wattline.twin.workload import arrivals_of
from wattline.units import SECONDS_PER_HOUR

QUICK_JOBS = 3000
STEPS = (80, 120, 100, 160, 80, 140, 120, 180, 100, 160, 80, 120)
QUICK_STEPS = (30, 50, 40, 60, 30, 55)
ENOUGH_RUNS = 5
_LEAST_IN_GROUP = 10
_UNKNOWN_SECONDS = 86400.0  # said where nothing has ended yet
_ENDS, _COMES, _BEGINS = range(3)

TRAIN = """
import numpy as np
from wattline import train

rng = np.random.default_rng(7)
weights = rng.normal(size=(400, 400))
run = train.start(model={"weights": weights}, rng=rng)
for step in run.steps(train.params()["steps"]):
    weights[:] = np.tanh(weights @ rng.normal(size=(400, 400)) / 20.0)
"""
PIPELINE = {
    "pipeline": "small",
    "model": "small",
    "owner": "bench",
    "project": "bench",
    "params": "params.json",
    "phases": {"train": {"run": "python train.py", "resources": {"gpus": 1}}},
}


@dataclass(frozen=True, slots=True)
class Ran:
    """How one job of the trace fared in the replay."""

    name: str
    group: Group
    came_at: float
    began_at: float
    ended_at: float
    seconds: float


@dataclass(slots=True)
class Watching:
    """Notes from the replay's journal when jobs begin and end."""

    began_at: dict[str, list[float]] = field(default_factory=dict)
    ended_at: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def keep(self, record: bytes) -> None:
        if b'"AttemptEnded"' not in record and b'"AttemptStarted"' not in record:
            return
        for event in decode_step(record).events:
            if isinstance(event, AttemptStarted):
                self.began_at.setdefault(event.job, []).append(event.at)
            elif isinstance(event, AttemptEnded) and event.job in self.began_at:
                worked = event.at - self.began_at[event.job][-1]
                self.seconds[event.job] = self.seconds.get(event.job, 0.0) + worked
                self.ended_at[event.job] = event.at

    def ran(self, jobs: Iterable[TraceJob]) -> list[Ran]:
        return [
            Ran(
                name=job.name,
                group=group_of(job.project, job.gpus),
                came_at=BEGINS_AT + job.arrives_seconds,
                began_at=self.began_at[name][0],
                ended_at=self.ended_at[name],
                seconds=self.seconds[name],
            )
            for job in jobs
            if (name := f"{job.name}/train") in self.ended_at
        ]


def replay(most_jobs: int | None) -> list[Ran]:
    trace = read_trace(PHILLY, most_jobs=most_jobs, skip_days=SKIP_DAYS if most_jobs else 0.0)
    watching = Watching()
    setting = Setting(
        name="philly",
        facility=read_facility("philly-800"),
        policy=read_policy("default"),
        arrivals=lambda: arrivals_of(trace.jobs, BEGINS_AT, 0),
    )
    run(setting, keep=watching.keep)
    return watching.ran(trace.jobs)


class Plain:
    """The quantile of all that ended in a group; of its cluster, or of all, where those are few."""

    def __init__(self, until: float = math.inf) -> None:
        self._until = until
        self._ended: dict[Group, list[float]] = {}

    def end(self, job: Ran) -> None:
        if job.ended_at <= self._until:
            for depth in range(len(job.group) + 1):
                insort(self._ended.setdefault(job.group[:depth], []), job.seconds)

    def p90_seconds(self, group: Group) -> float:
        for depth in range(len(group), -1, -1):
            ended = self._ended.get(group[:depth], ())
            if len(ended) >= _LEAST_IN_GROUP:
                return ended[math.ceil(P90 * len(ended)) - 1]
        return _UNKNOWN_SECONDS


@dataclass(slots=True)
class Score:
    """Pinball loss: what a quantile is judged by; nine times as much for too short as for too long."""

    name: str
    jobs: int = 0
    covered: int = 0
    loss_hours: float = 0.0
    log_loss: float = 0.0

    def count(self, seconds: float, p90_seconds: float) -> None:
        self.jobs += 1
        self.covered += seconds <= p90_seconds
        self.loss_hours += _pinball(seconds, p90_seconds) / SECONDS_PER_HOUR
        self.log_loss += _pinball(math.log(max(1.0, seconds)), math.log(max(1.0, p90_seconds)))

    def say(self) -> None:
        share = 100.0 * self.covered / self.jobs
        print(
            f"{self.name:<44}{self.jobs:>8,}{share:>10.1f} %{self.loss_hours / self.jobs:>10.3f}"
            f"{self.log_loss / self.jobs:>10.4f}"
        )


def _pinball(value: float, quantile: float) -> float:
    return P90 * (value - quantile) if value > quantile else (1.0 - P90) * (quantile - value)


def estimate_philly(jobs: Sequence[Ran]) -> tuple[Score, Score, Score]:
    """The first half, all that ended, ours; in the order of time."""
    half_at = jobs[len(jobs) // 2].came_at
    first_half, all_ended, ours = Plain(half_at), Plain(), Experience()
    scores = Score("quantile of the first half"), Score("quantile of all that ended"), Score("estimate")
    turns = [(job.ended_at, _ENDS, number) for number, job in enumerate(jobs)]
    turns += [(job.came_at, _COMES, number) for number, job in enumerate(jobs)]
    turns += [(job.began_at, _BEGINS, number) for number, job in enumerate(jobs)]
    for at, turn, number in sorted(turns):
        job = jobs[number]
        if turn == _ENDS:
            first_half.end(job)
            all_ended.end(job)
            ours.end(job.name, job.group, at, job.seconds)
        elif turn == _BEGINS:
            ours.begin(job.name, at)
        else:
            expected = ours.submit(job.name, job.group, at)
            if at >= half_at:
                scores[0].count(job.seconds, first_half.p90_seconds(job.group))
                scores[1].count(job.seconds, all_ended.p90_seconds(job.group))
                scores[2].count(job.seconds, expected.p90_seconds if expected else _UNKNOWN_SECONDS)
    return scores


def run_locally(steps: Sequence[int], root: Path) -> list[Compared]:
    folder, home = root / "pipeline", root / "home"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "wattline.yaml").write_text(json.dumps(PIPELINE))
    environment = os.environ | {"WATTLINE_HOME": str(home)}
    for count in steps:
        (folder / "params.json").write_text(json.dumps({"steps": count}))
        command = [str(Path(sys.executable).with_name("wattline")), "run"]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=300)
    session = open_session(Home(home))
    try:
        assert session.state is not None
        runs = gather_runs(session.state, "small", time.time())
        return list(look_back(runs, session.state.plant).compared)
    finally:
        session.close()


def say_local(steps: Sequence[int], compared: Sequence[Compared]) -> None:
    print(
        f"\n{'recorded runs':<16}{'steps':>8}{'before':>8}{'USD':>10}{'expected':>10}{'off by':>10}{'p90':>9}"
    )
    for count, one in zip(steps[1:], compared, strict=True):  # before the first nothing was known
        off, held = 100.0 * (one.error or 0.0), "held" if one.covered else "passed"
        print(
            f"run {one.earlier + 1:<12}{count:>8}{one.earlier:>8}{one.usd:>10.5f}{one.expected_usd:>10.5f}"
            f"{off:>8.1f} %{held:>9}"
        )
    counted = [one.error for one in compared if one.earlier >= ENOUGH_RUNS and one.error is not None]
    mape = 100 * sum(counted) / max(1, len(counted))
    print(f"  cost MAPE with {ENOUGH_RUNS} or more recorded runs: {mape:.1f} % (bar: 15 %)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_JOBS} jobs, fewer and shorter runs")
    parser.add_argument("--only", choices=("philly", "local"))
    arguments = parser.parse_args()
    if arguments.only in (None, "philly"):
        print(
            f"{'p90 of duration, Philly on philly-800':<44}{'jobs':>8}{'covers':>12}{'hours':>10}{'log':>10}"
        )
        scores = estimate_philly(replay(QUICK_JOBS if arguments.quick else None))
        for score in scores:
            score.say()
        for plain in scores[:2]:
            less = 100 * (1 - scores[2].loss_hours / plain.loss_hours)
            print(f"  pinball loss against the {plain.name}: {less:.1f} % less (bar: above 0)")
        print("  p90 covers 85 to 95 % (bar)", flush=True)
    if arguments.only in (None, "local"):
        steps = QUICK_STEPS if arguments.quick else STEPS
        with tempfile.TemporaryDirectory(prefix="wattline-estimates-") as root:
            say_local(steps, run_locally(steps, Path(root)))


if __name__ == "__main__":
    main()
