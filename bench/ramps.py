"""How quickly does a burst of starts load the feeds, and what does it cost to keep to their ramps?

    python -m bench.ramps [--short]

200 jobs of 1 to 16 GPUs come to the three sites within five seconds. The feeds have a ramp of 5 % of what
they carry for hours, in a minute. Shown are the quickest minute of the worst feed of each site beside its
ramp, without and with the ramps kept, what jobs waited on top, and what one turn of the loop took.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from wattline.facility import Facility
from wattline.policy import decide
from wattline.spec import read_facility, read_policy
from wattline.spec.policy import Policy
from wattline.state import ActionKind, Decision, JobRequest, Snapshot
from wattline.twin.report import Report
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.workload import LARGE_CLASS, SMALL_CLASS, Arrival

HOUR = 3600.0
SIZES = (1, 2, 4, 4, 8, 8, 16)
WITHIN_SECONDS = 5.0
RAMP = 0.05  # of what a feed carries for hours
UNBOUND_WATTS_PER_MINUTE = 1e12  # metered, and never reached


@dataclass(frozen=True, slots=True)
class Burst:
    report: Report
    waits_seconds: list[float]
    turn_seconds: list[float]


def ramped(facility: Facility, *, kept: bool) -> Facility:
    sites = []
    for site in facility.sites:
        supplies = []
        for supply in site.supplies:
            ramp = RAMP * supply.usable_watts if kept else UNBOUND_WATTS_PER_MINUTE
            is_feed = supply.parent is None
            supplies.append(replace(supply, ramp_watts_per_minute=ramp) if is_feed else supply)
        sites.append(replace(site, supplies=tuple(supplies)))
    return replace(facility, sites=tuple(sites))


def coming(jobs: int, seed: int) -> Iterator[Arrival]:
    draw = Random(f"ramps/{seed}")
    moments = sorted(draw.uniform(0.0, WITHIN_SECONDS) for _ in range(jobs))
    for number, moment in enumerate(moments):
        gpus = draw.choice(SIZES)
        yield Arrival(
            at=BEGINS_AT + moment,
            request=JobRequest(
                job=f"burst-{number}/train",
                run=f"burst-{number}",
                scheduling_class=LARGE_CLASS if gpus >= 8 else SMALL_CLASS,
                gpus=gpus,
                checkpoints=True,
            ),
            work_seconds=draw.uniform(2 * HOUR, 4 * HOUR),
            utilisation=draw.uniform(0.7, 1.0),
        )


def burst(facility: Facility, jobs: int, seed: int) -> Burst:
    arrived = {arrival.request.job: arrival.at for arrival in coming(jobs, seed)}
    started: dict[str, float] = {}
    turns: list[float] = []

    def watch(snapshot: Snapshot, policy: Policy) -> Decision:
        began = time.perf_counter()
        decision = decide(snapshot, policy)
        turns.append(time.perf_counter() - began)
        for action in decision.actions:
            if action.kind is ActionKind.START:
                started.setdefault(action.job, decision.at)
        return decision

    setting = Setting(
        name="ramps",
        facility=facility,
        policy=read_policy("default"),
        arrivals=lambda: coming(jobs, seed),
        seed=seed,
        decide=watch,
    )
    report = run(setting).report
    return Burst(report, [started[job] - at for job, at in arrived.items() if job in started], turns)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="40 jobs")
    jobs = 40 if parser.parse_args().short else 200
    facility = read_facility("three-sites")
    free, held = (burst(ramped(facility, kept=kept), jobs, 1) for kept in (False, True))
    print("| site | quickest minute, as it comes | kept | its ramp |\n|---|---|---|---|")
    over = False
    for site in ramped(facility, kept=True).sites:
        feeds = [supply for supply in site.supplies if supply.parent is None]
        worst = [
            max(one.report.feeds[feed.name].worst_ramp_kw_per_minute or 0.0 for feed in feeds)
            for one in (free, held)
        ]
        limit = min(feed.ramp_watts_per_minute or 0.0 for feed in feeds) / 1000.0
        over = over or worst[1] > limit
        print(f"| {site.name} | {worst[0]:.1f} kW | {worst[1]:.1f} kW | {limit:.1f} kW |")
    print("\n| | as it comes | ramps kept |\n|---|---|---|")
    rows = {
        "jobs that ran": [f"{one.report.jobs.completed}" for one in (free, held)],
        "wait, mean": [f"{np.mean(one.waits_seconds):.0f} s" for one in (free, held)],
        "wait, p95": [f"{np.percentile(one.waits_seconds, 95):.0f} s" for one in (free, held)],
        "last one done after": [f"{one.report.simulated_hours:.2f} h" for one in (free, held)],
        "turns": [f"{len(one.turn_seconds)}" for one in (free, held)],
        "a decision, p95": [f"{1000 * np.percentile(one.turn_seconds, 95):.1f} ms" for one in (free, held)],
    }
    for name, (first, second) in rows.items():
        print(f"| {name} | {first} | {second} |")
    sys.exit(over)


if __name__ == "__main__":
    main()
