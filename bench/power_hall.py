"""A hall of V100s under one feed, jobs whose draw and speed under caps were measured, and their optimum.

What each job truly draws and how fast it is under caps is a configuration of ml-energy/zeus. The programme
knows every job's own curve: no policy can do better.
"""

from __future__ import annotations

import csv
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linprog

from wattline.control import Decide
from wattline.facility import (
    DEVICES,
    CoolingKind,
    Facility,
    Loop,
    Node,
    Rack,
    Site,
    Storage,
    Supply,
)
from wattline.physics.cap_curve import OwnCurve
from wattline.policy import decide
from wattline.spec.policy import Policy
from wattline.spec.power_sharing import PowerSharing
from wattline.state import JobRequest
from wattline.twin import run as running
from wattline.twin.run import BEGINS_AT, Setting
from wattline.twin.truth import Truth
from wattline.twin.workload import Arrival

_DATA = Path(os.environ.get("WATTLINE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
ZEUS = _DATA / "gpu_power" / "zeus_summary_power_v100.csv"
DEVICE = DEVICES["V100"]
HEAVY_WATTS = 150.0
GPUS_OF_NODE, NODES_OF_RACK = 4, 8
RACK_GPUS = GPUS_OF_NODE * NODES_OF_RACK
FEED, SITE = "hall/feed", "hall"
ASLEEP = 0.05  # of its idle draw, what a sleeping node takes
_BLOCK = 8  # of so many jobs in a row, the same number are rigid
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Job:
    arrival: Arrival
    curve: OwnCurve
    is_rigid: bool


def read_heavy() -> list[OwnCurve]:
    """Configurations that draw much; none is taken to be faster under a cap than without."""
    runs: dict[tuple[str, ...], dict[float, tuple[float, float]]] = defaultdict(dict)
    with ZEUS.open(newline="") as file:
        for row in csv.DictReader(file):
            key = (row["dataset"], row["network"], row["batch_size"], row["optimizer"])
            runs[key][float(row["power_limit"])] = (float(row["time_per_epoch"]), float(row["average_power"]))
    curves = []
    for _, by_cap in sorted(runs.items()):
        full_seconds, full_watts = by_cap[DEVICE.limit_watts]
        if full_watts >= HEAVY_WATTS:
            caps = sorted(by_cap)
            curves.append(
                OwnCurve(
                    cap_fractions=tuple(cap / DEVICE.limit_watts for cap in caps),
                    watts=tuple(by_cap[cap][1] for cap in caps),
                    speeds=tuple(min(1.0, full_seconds / by_cap[cap][0]) for cap in caps),
                )
            )
    return curves


def build(racks: int, other_watts: float, feed_watts: float) -> Facility:
    """Racks of V100s on one feed, with cooling for all; `other_watts` for each GPU."""
    nameplate = RACK_GPUS * (DEVICE.limit_watts + other_watts)
    loop = Loop(
        name="hall/loop",
        kind=CoolingKind.DIRECT_TO_CHIP,
        capacity_watts=10 * racks * nameplate,
        supply_celsius=20.0,
        approach_kelvin=5.0,
        time_constant_seconds=300.0,
    )
    built = [
        Rack(
            name=f"hall/r{rack}",
            row="hall/row",
            cap_watts=1.1 * nameplate,
            supplies=(FEED,),
            redundant=False,
            loop=loop.name,
            switch="hall/switch",
            nodes=tuple(
                Node(
                    name=f"hall/r{rack}-n{node}",
                    rack=f"hall/r{rack}",
                    device=DEVICE,
                    gpus=GPUS_OF_NODE,
                    cpus=64,
                    other_watts=other_watts * GPUS_OF_NODE,
                )
                for node in range(NODES_OF_RACK)
            ),
        )
        for rack in range(racks)
    ]
    site = Site(
        name=SITE,
        region="eu",
        supplies=(Supply(name=FEED, rating_watts=feed_watts / 0.8),),
        loops=(loop,),
        racks=tuple(built),
        storage=Storage(name="hall/scratch", throughput_bytes_per_second=1e12),
        usd_per_kwh=0.1,
        carbon_zone="XX",
        grams_co2_per_kwh=100.0,
        pue=1.0,
        telemetry="emulated",
        engine="local",
    )
    return Facility(name="hall", sites=(site,), links=())


def make_jobs(
    curves: Sequence[OwnCurve], seed: int, count: int, rigid: float, hours: tuple[float, float]
) -> list[Job]:
    """A queue that is there from the beginning: each job a node, one of the configurations by lot."""
    lots = random.Random(seed)
    jobs = []
    marks = [number < round(rigid * _BLOCK) for number in range(_BLOCK)]
    for number in range(count):
        if number % _BLOCK == 0:
            lots.shuffle(marks)
        is_rigid = marks[number % _BLOCK]
        request = JobRequest(
            job=f"job-{number:04}/train",
            run=f"job-{number:04}",
            scheduling_class="rigid" if is_rigid else "flexible",
            gpus=GPUS_OF_NODE,
            ladder=(),
            checkpoints=not is_rigid,
        )
        curve = lots.choice(curves)
        work_seconds = HOUR * lots.uniform(*hours)
        at = BEGINS_AT + 1e-3 * number  # in line by number, whatever their class
        arrival = Arrival(at=at, request=request, work_seconds=work_seconds, utilisation=1.0, curve=curve)
        jobs.append(Job(arrival, curve, is_rigid))
    return jobs


class Watched(Truth):
    """Notes what the feed carries whenever that changes."""

    trail: list[tuple[float, float]]
    started: set[str]

    def __init__(self, plant: Any, **given: Any) -> None:
        super().__init__(plant, **given)
        self._feed = plant.resource_number[FEED]
        Watched.trail, Watched.started = [], set()

    def load(self, key: str, *given: Any) -> None:
        super().load(key, *given)
        Watched.started.add(key)
        self._note()

    def change(self, key: str, at: float, **given: Any) -> None:
        super().change(key, at, **given)
        self._note()

    def unload(self, key: str, at: float) -> float:
        joules = super().unload(key, at)
        self._note()
        return joules

    def _note(self) -> None:
        Watched.trail.append((self.now - BEGINS_AT, self.resource_watts(self._feed)))


@dataclass(frozen=True, slots=True)
class Played:
    useful_gpu_seconds: float
    violation_seconds: float
    trail: list[tuple[float, float]]
    started: set[str]

    def mean_watts(self, until: float) -> float:
        return sum(watts * seconds for _, seconds, watts in self.spans(until)) / until

    def spans(self, until: float) -> Iterator[tuple[float, float, float]]:
        """When a span began, how long it lasted, and what was carried."""
        ends = [at for at, _ in self.trail[1:]] + [until]
        for (at, watts), end in zip(self.trail, ends, strict=True):
            if end > at:
                yield at, end - at, watts

    def seconds_over(self, limit_watts: float, since: float, until: float) -> float:
        return sum(
            min(at + seconds, until) - max(at, since)
            for at, seconds, watts in self.spans(until)
            if watts > limit_watts and at + seconds > since
        )


def play(
    facility: Facility,
    jobs: Sequence[Job],
    seed: int,
    until: float,
    sharing: PowerSharing | None = None,
    decided: Decide = decide,
) -> Played:
    policy = Policy(required_metadata=(), power_sharing=sharing or PowerSharing())
    setting = Setting(
        name="power-sharing",
        facility=facility,
        policy=policy,
        arrivals=lambda: iter([job.arrival for job in jobs]),
        seed=seed,
        decide=decided,
        asleep=sharing.asleep if sharing is not None else 1.0,
        until_seconds=until,
    )
    setattr(running, "Truth", Watched)  # noqa: B010 - the run makes its own
    try:
        report = running.run(setting).report
    finally:
        setattr(running, "Truth", Truth)  # noqa: B010
    useful = report.useful_gpu_hours * HOUR
    return Played(useful, report.cap_violation_seconds, Watched.trail, Watched.started)


def solve(
    jobs: Sequence[Job],
    watts: float,
    off_watts: float,
    gpus: float,
    other_watts: float,
    seconds: float,
    *,
    rigid_run: bool = False,
) -> float:
    """The most GPU-seconds of work these jobs could do in that time with so many watts on average.

    Each may spend any share of the time at any measured cap, or off; rigid ones only without a cap. A GPU
    that nobody uses takes `off_watts`. With `rigid_run`, rigid jobs run throughout.
    """
    worth, drawn, own, slots, least = [], [], [], [], []
    for number, job in enumerate(jobs):
        each = list(zip(job.curve.watts, job.curve.speeds, strict=True))
        for cap_watts, speed in each[-1:] if job.is_rigid else each:
            worth.append(-speed)
            drawn.append(cap_watts + other_watts - off_watts)
            own.append(number)
            slots.append(speed)
            least.append(seconds * GPUS_OF_NODE if rigid_run and job.is_rigid else 0.0)
    count, columns = len(worth), np.arange(len(worth))
    # Nobody does more than its work, and nobody more in a second than a second's.
    limits = np.zeros((2 * len(jobs) + 2, count))
    limits[own, columns] = slots
    limits[len(jobs) + np.array(own), columns] = 1.0
    limits[-2], limits[-1] = drawn, 1.0
    most = [
        *[job.arrival.work_seconds * GPUS_OF_NODE for job in jobs],
        *[seconds * GPUS_OF_NODE for _ in jobs],
        watts * seconds - gpus * seconds * off_watts,
        gpus * seconds,
    ]
    between: list[tuple[float, float | None]] = [(each, None) for each in least]
    solved = linprog(worth, A_ub=limits, b_ub=most, bounds=between, method="highs")
    if solved.fun is None:
        raise RuntimeError(solved.message)
    return -float(solved.fun)
