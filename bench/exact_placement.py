"""How far from the best is the placement that decides, when all waiting jobs are weighed together?

    python -m bench.exact_placement [--short] [--seed N]

200 random instances: two or three sites of a few racks, with GPUs of two kinds, prices, carbon and caps of
their own, some of it taken; six to fourteen jobs of one to 16 GPUs have just arrived. `decide` places them
one after the other, as it does everywhere; `twin/exact.py` places them all at once with HiGHS. Both are
scored by `policy/placing/objective.py`, each place as if it were the only one decided, jobs without a place
included.
The exact score is a bound: of gangs it counts the price alone. *gap* is what the decided score is above it;
*of what is decided* is the same without what every placement must pay (each job at its cheapest).
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from wattline.facility import Facility
from wattline.policy import decide
from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.objective import waiting_score
from wattline.policy.placing.placement import score_place
from wattline.spec import FacilityDocument, Policy, build_facility, read_policy
from wattline.state import Decision, JobRequest, Place, RunSubmitted, Snapshot, State, compared_hours
from wattline.twin.exact import place_exactly

BAR = 0.05
INSTANCES = 200
_AT = 4 * 86400.0
_SIZES = (1, 1, 2, 2, 4, 4, 8, 8, 12, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Of one instance."""

    decided: float
    exact: float
    least: float  # each job at its cheapest, none waiting
    asked_gpus: int
    decided_gpus: int
    exact_gpus: int

    @property
    def gap(self) -> float:
        return self.decided / self.exact - 1.0

    @property
    def open_gap(self) -> float:
        """The same of what is above the least that must be paid."""
        return (self.decided - self.exact) / max(self.exact - self.least, 1.0)


def a_random_facility(chance: random.Random) -> Facility:
    return build_facility(
        FacilityDocument.model_validate(
            {
                "facility": "random",
                "sites": {f"site-{number}": _site(chance) for number in range(chance.choice((2, 3)))},
            }
        ),
        source="bench",
    )


def _site(chance: random.Random) -> dict[str, object]:
    gpu, other, full_kilowatts = chance.choice((("H100", "2.2kW", 15.6), ("A100", "1.5kW", 9.4)))
    racks = chance.choice((2, 3, 4))
    cap = round(full_kilowatts * chance.uniform(0.8, 1.0), 1)
    feed = round(racks * cap * chance.uniform(0.9, 1.2) / 0.8, 1)
    return {
        "region": "eu",
        "tariff": {"energy": round(chance.uniform(0.04, 0.2), 3)},
        "carbon": {"zone": "XX", "intensity": chance.choice((20, 100, 400))},
        "pue": round(chance.uniform(1.05, 1.4), 2),
        "feeds": {"a": {"rating": f"{feed}kW"}},
        "loops": {
            "cdu": {
                "kind": "direct-to-chip",
                "capacity": f"{round(racks * full_kilowatts, 1)}kW",
                "supply": "30C",
            }
        },
        "racks": {
            f"r{rack}": {
                "row": 1,
                "cap": f"{cap}kW",
                "power": ["a"],
                "loop": "cdu",
                "switch": "leaf-1",
                "nodes": {"count": 2, "gpu": gpu, "gpus": 8, "cpus": 112, "other": other},
            }
            for rack in range(racks)
        },
        "storage": {"name": "shared", "throughput": "40GB/s", "capacity": "5PB"},
        "telemetry": {"source": "nvml"},
    }


def _request(chance: random.Random, name: str) -> JobRequest:
    gpus = chance.choice(_SIZES)
    each_watts = chance.choice((None, chance.uniform(200.0, 700.0)))
    return JobRequest(
        job=f"{name}/train",
        run=name,
        gpus=gpus,
        cpus=float(min(32, 4 * gpus)),
        peak_watts=None if each_watts is None else each_watts * gpus,
        max_duration_seconds=3600.0 * chance.uniform(1.0, 24.0),
    )


def _submit(state: State, requests: Sequence[JobRequest]) -> Decision:
    state.fold([RunSubmitted(at=_AT, run=one.run, pipeline="bench", jobs=(one,)) for one in requests])
    return decide(Snapshot(state, _AT), read_policy("default"))


def compare(seed: int) -> Comparison:
    chance, policy = random.Random(seed), read_policy("default")
    state = State(a_random_facility(chance))
    taken = [_request(chance, f"taken-{number}") for number in range(chance.randrange(2, 8))]
    state.settle(_submit(state, taken))
    requests = [_request(chance, f"new-{number}") for number in range(chance.randrange(6, 15))]
    decision = _submit(state, requests)
    snapshot = Snapshot(state, _AT)
    places = {action.job: action.place for action in decision.actions if action.place is not None}
    exact = place_exactly(snapshot, policy, requests)
    return Comparison(
        decided=total_score(snapshot, policy, requests, places),
        exact=min(exact.score, total_score(snapshot, policy, requests, exact.places)),
        least=sum(pools_for(snapshot.plant, policy, one)[0][0] * compared_hours(one) for one in requests),
        asked_gpus=sum(one.gpus for one in requests),
        decided_gpus=sum(one.gpus for one in requests if one.job in places),
        exact_gpus=sum(one.gpus for one in requests if one.job in exact.places),
    )


def total_score(
    snapshot: Snapshot, policy: Policy, requests: Sequence[JobRequest], places: dict[str, Place]
) -> float:
    """The objective of all of them; a job without a place waits."""
    total = 0.0
    for one in requests:
        place = places.get(one.job)
        scored = None if place is None else score_place(snapshot, policy, one, place)
        total += waiting_score(policy.weights, one) if scored is None else scored
    return total


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="12 instances")
    parser.add_argument("--seed", type=int, default=0, help="of the first instance")
    asked = parser.parse_args(arguments)
    began = time.process_time()
    count = 12 if asked.short else INSTANCES
    found = [compare(asked.seed + number) for number in range(count)]
    print(f"{count} instances, {time.process_time() - began:.0f} CPU s")
    mean = statistics.mean(one.gap for one in found)
    for name, gaps in (
        ("gap", [one.gap for one in found]),
        ("of what is decided", [one.open_gap for one in found]),
    ):
        ordered = sorted(gaps)
        p95 = ordered[max(0, -(-95 * count // 100) - 1)]
        worst, middle = ordered[-1], statistics.mean(ordered)
        print(f"{name:<20} mean {100 * middle:6.2f} %  p95 {100 * p95:6.2f} %  worst {100 * worst:6.2f} %")
    asked_gpus, decided, exact = (
        sum(getattr(one, name) for one in found) for name in ("asked_gpus", "decided_gpus", "exact_gpus")
    )
    print(f"GPUs asked {asked_gpus}, placed by decide {decided}, exactly {exact}")
    print(f"bar: within {100 * BAR:g} % on average: {'met' if mean <= BAR else 'missed'}")
    return int(mean > BAR)


if __name__ == "__main__":
    sys.exit(main())
