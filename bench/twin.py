"""How many jobs does the twin get through in a CPU-second, and what does its physics add?

    python -m bench.twin [--quick]

Every row is a process of its own, from start-up to report, so that reading the trace, physics and journal
count; CPU seconds are its user and system time. The machine's speed wanders by half: a fixed piece of
Python is timed beside each row (`yard`), and ratios are taken in yards.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

import msgspec

from bench.decisions import enlarge
from wattline.facility import Facility
from wattline.spec import read_facility, read_policy
from wattline.state import Plant
from wattline.twin import run as running
from wattline.twin.run import BEGINS_AT, Setting
from wattline.twin.traces import TraceJob, read_trace
from wattline.twin.truth import EnergyTally, Incident, SiteEnergy
from wattline.twin.workload import Arrival, arrivals_of

_DATA = Path(os.environ.get("WATTLINE_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))
PHILLY = _DATA / "jobs" / "philly.csv.gz"
SKIP_DAYS = 20.0
SCALES = (1.0, 3.4, 5.0, 20.0)
# Copies of three-sites and of its trace, together.
GROWTH = (1, 2, 4, 8)
MILLION_COPIES, MILLION = 40, 1_000_000
# So fast that those GPUs are full after a fifth of the jobs, and a thousand and more wait from then on.
MILLION_SCALE = 1200.0


def yardstick() -> float:
    """Seconds of CPU for a fixed piece of Python."""
    began = time.process_time()
    total = 0
    for number in range(3_000_000):
        total += number & 7
    return time.process_time() - began


def philly(scale: float, copies: int = 1, most_jobs: int | None = None) -> Callable[[], Iterator[Arrival]]:
    """The trace, several times over at the same times, under names of their own."""
    trace = read_trace(PHILLY, arrival_scale=scale, skip_days=SKIP_DAYS, most_jobs=most_jobs)
    if copies == 1:
        return lambda: arrivals_of(trace.jobs, BEGINS_AT, 0)

    def repeated() -> Iterator[TraceJob]:
        for job in trace.jobs:
            for copy in range(copies):
                yield msgspec.structs.replace(job, name=f"{job.name}-{copy}")

    return lambda: arrivals_of(repeated(), BEGINS_AT, 0)


def million(jobs: int, scale: float) -> Callable[[], Iterator[Arrival]]:
    """Philly over and over, one month after the other, each arriving faster than the facility ends them."""
    trace = read_trace(PHILLY, arrival_scale=scale, skip_days=SKIP_DAYS)
    month_seconds = trace.jobs[len(trace.jobs) - 1].arrives_seconds

    def repeated() -> Iterator[TraceJob]:
        for turn in count():
            for job in trace.jobs:
                arrives = job.arrives_seconds + turn * month_seconds
                yield msgspec.structs.replace(job, name=f"{job.name}-{turn}", arrives_seconds=arrives)

    return lambda: arrivals_of(islice(repeated(), jobs), BEGINS_AT, 0)


def metered_copies(copies: int) -> Facility:
    return read_facility("three-sites") if copies == 1 else enlarge(read_facility("three-sites"), copies)


class Weightless:
    """A truth without physics: whatever runs runs at full speed and draws nothing."""

    will_recover = False

    def __init__(self, plant: Plant, **_: object) -> None:
        nothing = dict.fromkeys(
            ("it_joules", "compute_joules", "facility_joules", "usd", "kg_co2e", "job_joules", "idle_joules"),
            0.0,
        )
        self.tally = EnergyTally(
            sites={site: SiteEnergy(**nothing, peak_watts=0.0) for site in plant.sites},
            cap_violation_seconds={},
            power_throttle_gpu_seconds=0.0,
            heat_throttle_gpu_seconds=0.0,
            shutdowns=0,
            trips=0,
        )

    def load(self, *_: object) -> None: ...

    def unload(self, *_: object) -> float:
        return 0.0

    def pace(self, _: str) -> float:
        return 1.0

    def next_change_at(self) -> float:
        return math.inf

    def advance(self, _: float) -> list[Incident]:
        return []

    def link_fraction(self, _: str) -> float:
        return 1.0


class Silent:
    """No meters at all."""

    def __init__(self, *_: object) -> None: ...

    def read(self, _: float) -> list[tuple[str, str, float | None]]:
        return []

    def next_look_at(self, _: float) -> float:
        return math.inf


def unmetered(facility: Facility) -> Facility:
    return replace(facility, sites=tuple(replace(site, telemetry="none") for site in facility.sites))


def one(arguments: argparse.Namespace) -> None:
    """One row, in this process: print its figures as JSON."""
    fast = yardstick()
    if arguments.row == "million":
        arrivals = million(arguments.jobs, arguments.scale)
    else:
        arrivals = philly(arguments.scale, arguments.copies, arguments.jobs or None)
    setting = Setting(
        name="philly",
        facility=metered_copies(arguments.copies),
        policy=read_policy("default"),
        arrivals=arrivals,
        arrival_scale=arguments.scale,
    )
    if arguments.weightless:  # the same loop around nothing
        for name, stand_in in (("Truth", Weightless), ("Meters", Silent), ("metered", unmetered)):
            setattr(running, name, stand_in)
    waiting: list[int] = []
    outcome = running.run(setting, tell=lambda glimpse: waiting.append(glimpse.waiting))
    report = outcome.report
    usage = resource.getrusage(resource.RUSAGE_SELF)
    waiting.sort()
    print(
        json.dumps(
            {
                "jobs": report.jobs.submitted,
                "gpus": report.gpus,
                "cpu_seconds": usage.ru_utime + usage.ru_stime - fast,
                "megabytes": usage.ru_maxrss / 1024,
                "most_waiting": waiting[-1] if waiting else 0,
                "queued_share": sum(each >= 1000 for each in waiting) / max(1, len(waiting)),
                "utilisation": report.utilisation,
                "wait_minutes": report.wait_minutes.mean,
                "yardstick": (fast + yardstick()) / 2,
                "digest": report.digest,
            }
        )
    )


def measure(
    row: str, scale: float, copies: int = 1, jobs: int = 0, *, weightless: bool = False
) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.twin", "--row", row, "--scale", str(scale)]
    command += ["--copies", str(copies), "--jobs", str(jobs)] + (["--weightless"] if weightless else [])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def say(name: str, figures: dict[str, float]) -> None:
    rate = figures["jobs"] / figures["cpu_seconds"]
    print(
        f"{name:<34}{figures['jobs']:>9,.0f}{figures['gpus']:>9,.0f}{figures['cpu_seconds']:>9.1f}"
        f"{rate:>9,.0f}{figures['yardstick'] * 1000:>8.0f}{figures['most_waiting']:>9,.0f}"
        f"{figures['megabytes']:>8,.0f}",
        flush=True,
    )


def compare_physics(scale: float, jobs: int, pairs: int) -> None:
    """With and without, in turns: one run alone is off by more than what is asked for."""
    cpu_seconds, yards = [0.0, 0.0], [0.0, 0.0]
    by_pair = []
    for _ in range(pairs):
        for is_heavy, name in enumerate(("without", "with")):
            figures = measure("philly", scale, jobs=jobs, weightless=not is_heavy)
            say(f"{name} physics, scale {scale:g}", figures)
            cpu_seconds[is_heavy] += figures["cpu_seconds"]
            yards[is_heavy] += figures["cpu_seconds"] / figures["yardstick"]
            by_pair.append(figures["cpu_seconds"])
    each = sorted(heavy / light - 1 for light, heavy in zip(by_pair[::2], by_pair[1::2], strict=True))
    print(
        f"  physics adds {100 * (yards[1] / yards[0] - 1):.0f} % in yards, "
        f"{100 * (cpu_seconds[1] / cpu_seconds[0] - 1):.0f} % in CPU seconds "
        f"({100 * each[0]:.0f} to {100 * each[-1]:.0f} % in single pairs)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="6,000 jobs a row, and no million")
    parser.add_argument("--only", choices=("speed", "physics", "growth", "million"))
    parser.add_argument("--pairs", type=int, default=5, help="runs with and without physics, in turns")
    parser.add_argument("--row", choices=("philly", "million"), help=argparse.SUPPRESS)
    parser.add_argument("--scale", type=float, default=1.0, help=argparse.SUPPRESS)
    parser.add_argument("--copies", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--weightless", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        one(arguments)
        return
    jobs = 6000 if arguments.quick else 0
    print(f"{'':<34}{'jobs':>9}{'GPUs':>9}{'CPU s':>9}{'jobs/s':>9}{'yard ms':>8}{'waiting':>9}{'MB':>8}")
    if arguments.only in (None, "speed"):
        for scale in SCALES:
            say(f"arrival scale {scale:g}", measure("philly", scale, jobs=jobs))
    if arguments.only in (None, "physics"):
        for scale in (1.0, 5.0):
            compare_physics(scale, jobs, arguments.pairs)
    if arguments.only in (None, "growth"):
        for copies in GROWTH:
            few = (jobs or 12_000) // 2
            say(f"growth, {copies} x", measure("philly", 5.0, copies, few))
    if arguments.only == "million" or (arguments.only is None and not arguments.quick):
        figures = measure("million", MILLION_SCALE, MILLION_COPIES, MILLION)
        say("a million", figures)
        print(f"  a thousand or more wait in {100 * figures['queued_share']:.0f} % of its steps", flush=True)


if __name__ == "__main__":
    main()
