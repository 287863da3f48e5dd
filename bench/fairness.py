"""What do two teams notice when a third floods the fleet?

    python -m bench.fairness [--short] [--only POLICY]

Three teams together ask for 70 % of what a hall of 800 GPUs carries. Then one of them submits many times
as much from a quarter of the time on, and the other two submit the very same jobs as before. Shown is
how long those two wait, p95, beside what they waited without the flood, under three policies: first come
first served, fair share, and fair share where jobs that save checkpoints make way.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from wattline.policy import decide
from wattline.spec import read_facility, read_policy
from wattline.spec.policy import Policy, Team
from wattline.spec.sharing import Sharing
from wattline.state import ActionKind, Decision, JobRequest, Snapshot
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.workload import LARGE_CLASS, SMALL_CLASS, Arrival

HOUR = 3600.0
TEAMS = ("nlp", "vision", "speech")
FLOODS = "speech"
# Of 800 GPUs, as many as power and air carry at once when all of them are claimed.
LOAD, CARRIED_GPUS = 0.7, 640
SIZES = (1, 1, 1, 2, 2, 4, 8, 8, 16)
SHORTEST, LONGEST = 600.0, 4 * HOUR
FLOOD_TIMES = 4.0
ALLOWED_SHARE, ALLOWED_SECONDS = 0.10, 60.0


@dataclass(frozen=True, slots=True)
class Waits:
    p95_seconds: dict[str, float]
    useful_gpu_hours: float
    preemptions: int


def policies() -> dict[str, Policy]:
    default = read_policy("default")
    fair = default.model_copy(update={"teams": {team: Team() for team in TEAMS}})
    gives = fair.model_copy(update={"sharing": Sharing(preempt=True, memory="day")})
    return {"first come, first served": default, "fair share": fair, "fair share, makes way": gives}


def coming(seed: int, hours: float, *, flooded: bool) -> Iterator[Arrival]:
    """Each team has lots of its own: the flood changes nobody else's jobs."""
    found: list[Arrival] = []
    for team in TEAMS:
        draw = Random(f"fairness/{seed}/{team}")
        mean_seconds = (LONGEST - SHORTEST) / math.log(LONGEST / SHORTEST)
        usual = LOAD * CARRIED_GPUS / len(TEAMS) / (sum(SIZES) / len(SIZES) * mean_seconds)  # jobs a second
        found += _jobs(team, draw, usual, 0.0, hours * HOUR)
        if flooded and team == FLOODS:
            more = Random(f"fairness/{seed}/{team}/flood")
            found += _jobs(f"{team}-flood", more, usual * FLOOD_TIMES, 0.25 * hours * HOUR, hours * HOUR)
    yield from sorted(found, key=lambda arrival: arrival.at)


def _jobs(name: str, draw: Random, rate: float, begins: float, ends: float) -> Iterator[Arrival]:
    at, number = begins, 0
    while (at := at + draw.expovariate(rate)) < ends:
        number += 1
        gpus = draw.choice(SIZES)
        yield Arrival(
            at=BEGINS_AT + at,
            request=JobRequest(
                job=f"{name}-{number}/train",
                run=f"{name}-{number}",
                project=name.removesuffix("-flood"),
                scheduling_class=LARGE_CLASS if gpus >= 8 else SMALL_CLASS,
                gpus=gpus,
                checkpoints=True,
            ),
            work_seconds=math.exp(draw.uniform(math.log(SHORTEST), math.log(LONGEST))),
            utilisation=draw.uniform(0.5, 0.9),
        )


def waits(policy: Policy, seed: int, hours: float, *, flooded: bool) -> Waits:
    arrived = {arrival.request.job: arrival for arrival in coming(seed, hours, flooded=flooded)}
    started: dict[str, float] = {}

    def watch(snapshot: Snapshot, policy: Policy) -> Decision:
        decision = decide(snapshot, policy)
        for action in decision.actions:
            if action.kind is ActionKind.START:
                started.setdefault(action.job, decision.at)
        return decision

    setting = Setting(
        name="fairness",
        facility=read_facility("philly-800"),
        policy=policy,
        arrivals=lambda: coming(seed, hours, flooded=flooded),
        seed=seed,
        decide=watch,
        until_seconds=hours * HOUR,
    )
    report = run(setting).report
    p95 = {}
    for team in TEAMS:
        if team == FLOODS:
            continue
        # Who came in the last hour may be waiting still, with no fault of anybody.
        of_team = [
            started.get(job, BEGINS_AT + hours * HOUR) - arrival.at
            for job, arrival in arrived.items()
            if arrival.request.project == team and arrival.at < BEGINS_AT + (hours - 1) * HOUR
        ]
        p95[team] = float(np.percentile(of_team, 95))
    return Waits(p95, report.useful_gpu_hours, report.preemptions)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one seed, half a day")
    parser.add_argument("--only", choices=tuple(policies()))
    arguments = parser.parse_args()
    seeds, hours = ((0,), 12.0) if arguments.short else (range(10), 48.0)
    print("| policy | seed | p95 wait, s: usual → flooded | bar, s | work | made way | |")
    print("|---|---|---|---|---|---|---|")
    for name, policy in policies().items():
        if arguments.only not in (None, name):
            continue
        for seed in seeds:
            usual = waits(policy, seed, hours, flooded=False)
            flood = waits(policy, seed, hours, flooded=True)
            bars = {
                team: max((1 + ALLOWED_SHARE) * before, before + ALLOWED_SECONDS)
                for team, before in usual.p95_seconds.items()
            }
            told = ", ".join(
                f"{team} {before:.0f} → {flood.p95_seconds[team]:.0f}"
                for team, before in usual.p95_seconds.items()
            )
            is_met = all(flood.p95_seconds[team] <= bar for team, bar in bars.items())
            met = "met" if is_met else "missed"
            bar = ", ".join(f"{value:.0f}" for value in bars.values())
            ratio = flood.useful_gpu_hours / usual.useful_gpu_hours
            print(f"| {name} | {seed} | {told} | {bar} | {ratio:.2f}× | {flood.preemptions} | {met} |")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
