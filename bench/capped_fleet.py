"""Under a power cap, who gets more work out of a kilowatt-hour and lets nobody wait longer?

    python -m bench.capped_fleet [--short]

`three-sites` with every feed at 70 % of its rating. Two workloads: Philly without its first 20 days,
five times as fast, and a made mix with more than 30 % of GPU-hours in jobs of 64 GPUs and more. Beside
the default policy, and the same with power shared, what people run today: FIFO, EASY backfill and power-
blind packing. Those know nothing of watts. They are run twice: as they are, and on as many racks as the
cap carries at their nameplates, which is how a site keeps them within it.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Callable, Iterator
from random import Random

from bench.twin import philly
from wattline.control import Decide
from wattline.facility import Facility, Site
from wattline.policy import decide
from wattline.spec import read_facility, read_policy
from wattline.spec.policy import Policy
from wattline.spec.power_sharing import PowerSharing
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


def play(
    facility: Facility, policy: Policy, arrivals: Callable[[], Iterator[Arrival]], seed: int, by: Decide
) -> Report:
    setting = Setting(
        name="capped", facility=facility, policy=policy, arrivals=arrivals, seed=seed, decide=by
    )
    return run(setting).report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one seed, a part of each workload")
    short = parser.parse_args().short
    whole = read_facility("three-sites")
    facility = capped(whole)
    default = read_policy("default")
    sharing = default.model_copy(update={"power_sharing": PowerSharing(by="meters")})
    gpus = sum(node.gpus for site in whole.sites for rack in site.racks for node in rack.nodes)
    jobs = 2000 if short else None
    workloads = [("philly", 0, philly(5.0, most_jobs=jobs))]
    hours = 12.0 if short else 96.0
    workloads += [("mix", seed, mixed(seed, hours, gpus)) for seed in range(1 if short else 5)]
    print("| workload | seed | who | GPU-h per kWh | mean wait, min | over, s | shutdowns | lost GPU-h |")
    print("|---|---|---|---|---|---|---|---|")
    for name, seed, arrivals in workloads:
        rows: list[tuple[str, Facility, Policy, Decide]] = [
            ("default", facility, default, decide),
            ("default, power shared", facility, sharing, decide),
        ]
        for peer in PEERS:
            rows.append((peer, facility, default, BASELINES[peer]))
            rows.append((f"{peer}, sized", sized(facility), default, BASELINES[peer]))
        for who, there, policy, by in rows:
            report = play(there, policy, arrivals, seed, by)
            wait = report.wait_minutes.mean
            told = "none" if wait is None else f"{wait:.1f}"
            each = report.useful_gpu_hours / report.energy_kwh
            print(
                f"| {name} | {seed} | {who} | {each:.3f} | {told} | {report.cap_violation_seconds:.0f} "
                f"| {report.shutdowns} | {report.lost_gpu_hours.total:.0f} |"
            )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
