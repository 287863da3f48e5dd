"""Under a power cap, who gets more work out of a kilowatt-hour and lets nobody wait longer?

    python -m bench.capped_fleet [--short] [--jobs N] [--hours H] [--seeds K] [--processes P] [--extra]

`three-sites` with every feed at 70 % of its rating. Two workloads: Philly without its first 20 days, five
times as fast (the same trace for every seed, which makes the facility differ), and a made mix with more than
30 % of GPU-hours in jobs of 64 GPUs and more. Our row is the shipped policy `capped-fleet`: watts shared by
what meters read, and nodes that sleep. Beside it what people run today: FIFO, EASY backfill and power-blind
packing. Those know nothing of watts. They are run twice: as they are, and on as many racks as the cap carries
at their nameplates (*sized*), which is how a site keeps them within it. `--extra` adds the default policy,
and ours without sleep. *of cap*: the most that a site drew of what one of its feeds may carry: A and B must
each be able to carry all of it.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from random import Random
from typing import NamedTuple

from bench.twin import philly
from wattline.control import Decide
from wattline.facility import Facility, Site
from wattline.policy import decide
from wattline.spec import read_facility, read_policy
from wattline.state import JobRequest
from wattline.twin.baselines import BASELINES
from wattline.twin.report import Report
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.workload import LARGE_CLASS, SMALL_CLASS, Arrival, draw_utilisation

CAP = 0.7
HOUR = 3600.0
PEERS = ("fifo", "easy", "power-blind")
# Sizes and how often each comes: four tenths of the GPU-hours are in jobs of 64 and 128.
MIX = {1: 40, 2: 20, 4: 15, 8: 14, 16: 6, 32: 3, 64: 1.5, 128: 0.5}
SHORTEST, LONGEST = 0.25 * HOUR, 24 * HOUR
LOAD = 1.05  # of all GPUs: with a cap, more than can be served


def capped(facility: Facility) -> Facility:
    """Every feed at a share of its rating."""

    def cap(site: Site) -> Site:
        supplies = [
            dataclasses.replace(supply, rating_watts=CAP * supply.rating_watts)
            if supply.parent is None
            else supply
            for supply in site.supplies
        ]
        return dataclasses.replace(site, supplies=tuple(supplies))

    return dataclasses.replace(facility, sites=tuple(cap(site) for site in facility.sites))


def sized(facility: Facility) -> Facility:
    """Only as many racks of each site as its feeds carry at their caps."""

    def size(site: Site) -> Site:
        feeds = [supply for supply in site.supplies if supply.parent is None]
        left = min(feed.rating_watts * feed.continuous_fraction for feed in feeds)
        racks = []
        for rack in site.racks:
            # With A and B each must carry all of it.
            if rack.cap_watts <= left:
                racks.append(rack)
                left -= rack.cap_watts
        return dataclasses.replace(site, racks=tuple(racks))

    return dataclasses.replace(facility, sites=tuple(size(site) for site in facility.sites))


def mixed(seed: int, hours: float, gpus: int) -> Callable[[], Iterator[Arrival]]:
    def coming() -> Iterator[Arrival]:
        draw = Random(f"capped/{seed}")
        sizes, often = list(MIX), list(MIX.values())
        mean_gpus = sum(size * times for size, times in MIX.items()) / sum(often)
        mean_seconds = (LONGEST - SHORTEST) / math.log(LONGEST / SHORTEST)
        at, number = 0.0, 0
        while (at := at + draw.expovariate(LOAD * gpus / (mean_gpus * mean_seconds))) < hours * HOUR:
            number += 1
            size = draw.choices(sizes, often)[0]
            yield Arrival(
                at=BEGINS_AT + at,
                request=JobRequest(
                    job=f"mix-{number}/train",
                    run=f"mix-{number}",
                    scheduling_class=LARGE_CLASS if size >= 8 else SMALL_CLASS,
                    gpus=size,
                    checkpoints=True,
                ),
                work_seconds=math.exp(draw.uniform(math.log(SHORTEST), math.log(LONGEST))),
                utilisation=draw_utilisation(seed, f"mix-{number}"),
            )

    return coming


class Row(NamedTuple):
    """Who decides, where, by which policy."""

    who: str
    is_sized: bool = False
    policy: str = "default"
    sleeps: bool = True


OURS = Row("ours", policy="capped-fleet")
ROWS = (OURS, *[Row(peer, is_sized=is_sized) for peer in PEERS for is_sized in (False, True)])
EXTRA = (Row("default"), Row("ours, none asleep", policy="capped-fleet", sleeps=False))


class Result(NamedTuple):
    workload: str
    seed: int
    who: str
    hours_per_kwh: float
    wait_minutes: float
    medium_wait_minutes: float  # of jobs of 8 to 63 GPUs
    large_wait_minutes: float  # of 64 and more
    of_cap: float
    over_seconds: float
    shutdowns: int
    lost_gpu_hours: float


def play(workload: str, seed: int, row: Row, jobs: int | None, hours: float) -> Result:
    whole = read_facility("three-sites")
    facility = capped(whole)
    there = sized(facility) if row.is_sized else facility
    policy = read_policy(row.policy)
    if not row.sleeps:
        policy = policy.model_copy(update={"scaling": None})
    arrivals = philly(5.0, most_jobs=jobs) if workload == "philly" else mixed(seed, hours, whole.gpus)
    decides: Decide = BASELINES.get(row.who, decide)
    setting = Setting(
        name="capped", facility=there, policy=policy, arrivals=arrivals, seed=seed, decide=decides
    )
    report = run(setting).report
    return Result(
        workload=workload,
        seed=seed,
        who=f"{row.who}, sized" if row.is_sized else row.who,
        hours_per_kwh=report.useful_gpu_hours / report.energy_kwh,
        wait_minutes=report.wait_minutes.mean or 0.0,
        medium_wait_minutes=_mean_wait(report, "8-63 GPUs"),
        large_wait_minutes=_mean_wait(report, "64+ GPUs"),
        of_cap=max(1000.0 * report.sites[site.name].peak_kw / cap_watts(site) for site in facility.sites),
        over_seconds=report.cap_violation_seconds,
        shutdowns=report.shutdowns,
        lost_gpu_hours=report.lost_gpu_hours.total,
    )


def _mean_wait(report: Report, size: str) -> float:
    known = report.sizes.get(size)
    return 0.0 if known is None else known.wait_minutes.mean or 0.0


def cap_watts(site: Site) -> float:
    """What a site may draw: any of its feeds must carry all of it."""
    feeds = [supply for supply in site.supplies if supply.parent is None]
    return min(feed.rating_watts * feed.continuous_fraction for feed in feeds)


def tell(result: Result) -> str:
    return (
        f"| {result.workload} | {result.seed} | {result.who} | {result.hours_per_kwh:.3f} "
        f"| {result.wait_minutes:.2f} | {result.medium_wait_minutes:.1f} | {result.large_wait_minutes:.1f} "
        f"| {result.of_cap:.0%} | {result.over_seconds:.0f} "
        f"| {result.shutdowns} | {result.lost_gpu_hours:.0f} |"
    )


def compare(results: Sequence[Result]) -> Iterator[str]:
    """Ours against each other row, seed by seed: the mean of the ratios, the least and the most."""
    by = {(one.workload, one.seed, one.who): one for one in results}
    for workload, who in dict.fromkeys((one.workload, one.who) for one in results):
        pairs = [
            (by[workload, seed, OURS.who], other)
            for (name, seed, named), other in by.items()
            if (name, named) == (workload, who) and who != OURS.who
        ]
        if not pairs:
            continue
        more = [ours.hours_per_kwh / other.hours_per_kwh for ours, other in pairs]
        waits = [(ours.wait_minutes, other.wait_minutes) for ours, other in pairs]
        mean_ours, mean_other = (statistics.mean(each) for each in zip(*waits, strict=True))
        yield (
            f"| {workload} | {who} | {statistics.mean(more):.2f} ({min(more):.2f} to {max(more):.2f}) "
            f"| {mean_ours:.2f} against {mean_other:.2f} |"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one seed, a part of each workload")
    parser.add_argument("--jobs", type=int, help="of the trace, the first so many; all without")
    parser.add_argument("--hours", type=float, default=48.0, help="of the mix")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=("philly", "mix"))
    parser.add_argument("--extra", action="store_true")
    asked = parser.parse_args()
    jobs, hours, seeds = (2000, 6.0, 1) if asked.short else (asked.jobs, asked.hours, asked.seeds)
    workloads = (asked.only,) if asked.only else ("philly", "mix")
    tasks = [
        (workload, seed, row, jobs, hours)
        for workload in workloads
        for seed in range(seeds)
        for row in (*ROWS, *(EXTRA if asked.extra else ()))
    ]
    waits = "mean wait, min | of 8-63 GPUs | of 64+"
    print(f"| workload | seed | who | GPU-h per kWh | {waits} | of cap | over, s | off | lost GPU-h |")
    print("|---" * 11 + "|", flush=True)
    results = []
    with ProcessPoolExecutor(max_workers=asked.processes) as pool:
        for played in as_completed([pool.submit(play, *task) for task in tasks]):
            results.append(played.result())
            print(tell(results[-1]), flush=True)
    results.sort(key=lambda one: (one.workload, one.seed))
    print("\n| workload | against | GPU-h per kWh, times | mean wait, min |\n|---|---|---|---|")
    print("\n".join(compare(results)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
