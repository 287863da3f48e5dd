"""What does it save to let nodes sleep, and who waits for them to wake?

    python -m bench.scaling [--days 7]

Philly at its own pace on three-sites, which it fills to a seventh: a quiet hall. The same days are
played with all nodes awake and with nodes that sleep, at several shares of arrivals that should find a node
awake. Energy is the facility's, cooling included; nothing here is metered, all of it is the twin's.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from bench.twin import philly
from wattline.spec import read_facility, read_policy
from wattline.spec.policy import Policy
from wattline.spec.scaling import Scaling
from wattline.twin.report import Report, ScalingReport
from wattline.twin.run import Setting, run

DAY = 86400.0
HITS = (0.5, 0.9, 0.99)


def policies(hits: Iterable[float] = HITS) -> dict[str, Policy]:
    """All awake; nothing kept warm; and warm pools by how many should find a node awake."""
    base = read_policy("default")
    sleeping = {"nothing kept warm": Scaling(most_warm=0)}
    sleeping |= {f"warm for {100 * hit:.0f} %": Scaling(warm_hit=hit) for hit in hits}
    return {
        "all awake": base,
        **{name: base.model_copy(update={"scaling": scaling}) for name, scaling in sleeping.items()},
    }


def play(policy: Policy, days: float, seed: int = 0) -> Report:
    setting = Setting(
        name="philly",
        facility=read_facility("three-sites"),
        policy=policy,
        arrivals=philly(1.0),
        seed=seed,
        until_seconds=days * DAY,
    )
    return run(setting).report


def row(name: str, report: Report) -> str:
    scaling, mean = report.scaling, report.wait_minutes.mean or 0.0
    told = f"{name:<20}{report.energy_kwh:>10,.0f}{60 * mean:>10.1f}{report.jobs.completed:>9,}"
    if not isinstance(scaling, ScalingReport):
        return told
    hit, penalty = scaling.hit_rate or 0.0, scaling.cold_start_seconds or 0.0
    return told + f"{100 * hit:>10.1f}{penalty:>11.0f}{scaling.wakes:>8,}{scaling.asleep_node_hours:>10,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=float, default=7.0)
    days = parser.parse_args().days
    print(
        f"{'':<20}{'kWh':>10}{'wait s':>10}{'ended':>9}"
        f"{'hit %':>10}{'penalty s':>11}{'woken':>8}{'asleep h':>10}"
    )
    for name, policy in policies().items():
        print(row(name, play(policy, days)), flush=True)


if __name__ == "__main__":
    main()
