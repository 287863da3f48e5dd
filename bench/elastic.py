"""What does it bring that jobs may run on fewer or more GPUs than they ask for, when many come at once?

    python -m bench.elastic [--short]

Jobs of 8 to 64 GPUs come to a hall of 800 GPUs, half of them within half an hour. All save checkpoints, and
may run on half to twice as many GPUs as they ask for; twice the GPUs are 2 ** alpha times as fast. Shown are
the mean time from submission to the end, how much useful work was done in the first half of the day (in
GPU-hours at the width that was asked for), and when the last had ended: with jobs as rigid as they ask, and
with `resizing` in the policy. A resize costs a save of 10 s and a restart of 60 s.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from wattline.spec import read_facility, read_policy
from wattline.spec.elastic import Resizing
from wattline.spec.policy import Policy
from wattline.state import JobRequest, elastic_request
from wattline.twin.report import Report
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.workload import LARGE_CLASS, Arrival

HOUR = 3600.0
SIZES = (8, 8, 16, 16, 32, 64)
SHORTEST, LONGEST = HOUR, 8 * HOUR
DAY_SECONDS, BURST_AT, BURST_SECONDS = 12 * HOUR, 2 * HOUR, 0.5 * HOUR
EARLY_SECONDS = 12 * HOUR


@dataclass(frozen=True, slots=True)
class Outcome:
    report: Report  # to the end
    early_gpu_hours: float


def coming(seed: int, jobs: int, alpha: float) -> Iterator[Arrival]:
    draw = Random(f"elastic/{seed}")
    moments = [draw.uniform(0.0, DAY_SECONDS) for _ in range(jobs - jobs // 2)]
    moments += [BURST_AT + draw.uniform(0.0, BURST_SECONDS) for _ in range(jobs // 2)]
    for number, moment in enumerate(sorted(moments)):
        gpus, work = draw.choice(SIZES), math.exp(draw.uniform(math.log(SHORTEST), math.log(LONGEST)))
        request = JobRequest(
            job=f"j{number}/train",
            run=f"j{number}",
            scheduling_class=LARGE_CLASS,
            gpus=gpus,
            max_duration_seconds=1.5 * work,
            checkpoints=True,
        )
        yield Arrival(
            at=BEGINS_AT + moment,
            request=elastic_request(request, gpus // 2, 2 * gpus, gpus // 4, alpha),
            work_seconds=work,
            utilisation=draw.uniform(0.5, 0.9),
        )


def replay(policy: Policy, seed: int, jobs: int, alpha: float) -> Outcome:
    def report(until_seconds: float | None) -> Report:
        setting = Setting(
            name="elastic",
            facility=read_facility("philly-800"),
            policy=policy,
            arrivals=lambda: coming(seed, jobs, alpha),
            seed=seed,
            until_seconds=until_seconds,
        )
        return run(setting).report

    return Outcome(report(None), report(EARLY_SECONDS).useful_gpu_hours)


def policies() -> dict[str, Policy]:
    default = read_policy("default")
    resized = default.model_copy(update={"resizing": Resizing()})
    sooner = default.model_copy(update={"resizing": Resizing(begin="if_sooner")})
    return {"as asked": default, "resized": resized, "resized, begin: if_sooner": sooner}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one seed, fewer jobs")
    short = parser.parse_args().short
    seeds, jobs = ((0,), 40) if short else (range(5), 120)
    print("| alpha | jobs | done, mean | p95 | useful in 12 h, GPU-h | all | lost | last after | resizes |")
    print("|---|---|---|---|---|---|---|---|---|")
    for alpha in (0.9, 0.7):
        for name, policy in policies().items():
            found = [replay(policy, seed, jobs, alpha) for seed in seeds]
            reports = [one.report for one in found]
            cells = (
                _span([(each.completion_minutes.mean or 0.0) / 60.0 for each in reports], "h"),
                _span([(each.completion_minutes.p95 or 0.0) / 60.0 for each in reports], "h"),
                _span([one.early_gpu_hours for one in found]),
                _span([each.useful_gpu_hours for each in reports]),
                _span([each.lost_gpu_hours.total for each in reports]),
                _span([each.simulated_hours for each in reports], "h"),
                _span([float(each.preemptions) for each in reports]),
            )
            print(f"| {alpha} | {name} | {' | '.join(cells)} |")
            sys.stdout.flush()
    return 0


def _span(values: list[float], unit: str = "") -> str:
    """The mean over seeds, with the least and the most."""
    digits = 2 if unit else 0
    mean, least, most = float(np.mean(values)), min(values), max(values)
    said = f"{mean:,.{digits}f}" + (f" {unit}" if unit else "")
    return said if len(values) == 1 else f"{said} ({least:,.{digits}f} to {most:,.{digits}f})"


if __name__ == "__main__":
    raise SystemExit(main())
