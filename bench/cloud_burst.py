"""What does a cloud region change for a queue with deadlines on a small hall?

    python -m bench.cloud_burst [--short]

The lab, 64 GPUs at two sites, is asked for more than it carries. Every job has a deadline, a longest duration
and checkpoints, and may burst. The same jobs meet the lab alone, and the lab with a region of 32 GPUs whose
price strays and whose machines are taken back with two minutes' notice. Runs go on until all jobs have ended.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from statistics import mean

from wattline.facility import DEVICES, Facility, Link, TrafficClass
from wattline.spec import read_facility, read_policy
from wattline.spec.cloud import CloudSiteDocument, build_cloud_site
from wattline.state import JobRequest
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.workload import LARGE_CLASS, SMALL_CLASS, Arrival

HOUR = 3600.0
SIZES = (1, 2, 4, 8)
SHORTEST, LONGEST = 0.5 * HOUR, 6 * HOUR
LOAD = 1.2  # of all the lab's GPUs
STRETCH = (1.3, 4.0)  # a deadline, in run times after the arrival
REGION = {
    "region": "eu",
    "carbon": {"zone": "IE", "intensity": 290},
    "cloud": {
        "instance": {"gpu": "A100", "gpus": 8, "cpus": 96},
        "max_gpus": 32,
        "price": 4.10,
        "spot": {"price": 2.10, "reclaim": 0.005, "notice": "2min", "varies": "20%"},
        "egress": 0.09,
    },
}


@dataclass(frozen=True, slots=True)
class Result:
    jobs: int
    completed: int
    missed: int
    usd: float
    egress_usd: float
    wait_minutes: float
    reclaims: int
    lost_gpu_hours: float  # to restarts: work that was done twice


def the_lab(*, with_cloud: bool) -> Facility:
    lab = read_facility("lab")
    if not with_cloud:
        return lab
    region = build_cloud_site("cloud-eu", CloudSiteDocument.model_validate(REGION), DEVICES["A100"])
    shares = dict.fromkeys(TrafficClass, 0.25)
    links = [
        Link(
            name=f"{site.name}-cloud",
            between=(site.name, region.name),
            bits_per_second=10e9,
            latency_seconds=0.02,
            shares=shares,
        )
        for site in lab.sites
    ]
    return replace(lab, sites=(*lab.sites, region), links=(*lab.links, *links))


def coming(seed: int, hours: float) -> Iterator[Arrival]:
    draw = Random(f"cloud-burst/{seed}")
    mean_seconds = (LONGEST - SHORTEST) / math.log(LONGEST / SHORTEST)
    rate = LOAD * read_facility("lab").gpus / (mean(SIZES) * mean_seconds)  # jobs a second
    at, number = 0.0, 0
    while (at := at + draw.expovariate(rate)) < hours * HOUR:
        number += 1
        gpus, work = draw.choice(SIZES), math.exp(draw.uniform(math.log(SHORTEST), math.log(LONGEST)))
        yield Arrival(
            at=BEGINS_AT + at,
            request=JobRequest(
                job=f"made-{number}/train",
                run=f"made-{number}",
                scheduling_class=LARGE_CLASS if gpus >= 8 else SMALL_CLASS,
                gpus=gpus,
                checkpoints=True,
                burst=True,
                brings_back_bytes=gpus * 2e9,
                max_duration_seconds=1.1 * work,
                deadline_at=BEGINS_AT + at + draw.uniform(*STRETCH) * work,
            ),
            work_seconds=work,
            utilisation=draw.uniform(0.6, 0.95),
        )


def measure(seed: int, hours: float, *, with_cloud: bool) -> Result:
    setting = Setting(
        name="cloud-burst",
        facility=the_lab(with_cloud=with_cloud),
        policy=read_policy("default"),
        arrivals=lambda: coming(seed, hours),
        seed=seed,
    )
    report = run(setting).report
    assert report.cost_usd is not None
    return Result(
        jobs=report.jobs.submitted,
        completed=report.jobs.completed,
        missed=report.late + report.jobs.submitted - report.jobs.completed,
        usd=report.cost_usd,
        egress_usd=report.egress_usd,
        wait_minutes=report.wait_minutes.mean or 0.0,
        reclaims=report.reclaims,
        lost_gpu_hours=report.lost_gpu_hours.restart,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one seed, a quarter of a day")
    seeds, hours = ((0,), 6.0) if parser.parse_args().short else (range(5), 48.0)
    print("| seed | | jobs | deadlines missed | USD | of it egress | mean wait | reclaims | done twice |")
    print("|---|---|---|---|---|---|---|---|---|")
    for seed in seeds:
        for with_cloud in (False, True):
            found = measure(seed, hours, with_cloud=with_cloud)
            assert found.completed == found.jobs, "a job was lost"
            name = "with the region" if with_cloud else "the lab alone"
            print(
                f"| {seed} | {name} | {found.jobs} | {found.missed} ({found.missed / found.jobs:.0%}) "
                f"| {found.usd:,.0f} | {found.egress_usd:,.0f} | {found.wait_minutes:,.0f} min "
                f"| {found.reclaims} | {found.lost_gpu_hours:.1f} GPU-h |"
            )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
