"""What may happen to a facility, played through in the twin: limits hold, load is shed in time, work goes on.

Truth is perturbed and meters are noisy and late, so the policy decides by a model that is not quite right.
"""

from __future__ import annotations

from functools import cache

import pytest

from wattline.spec import shipped_scenarios
from wattline.twin.replaying import read_rules
from wattline.twin.report import Report
from wattline.twin.run import run
from wattline.twin.scenario import read_stage, set_side_by_side, setting_of

# Heat that lasts for hours makes many decisions, so those scenarios have fewer seeds here.
SEEDS = {"heatwave": (0,), "wan-brownout": (1,)}
CASES = [(name, seed) for name in shipped_scenarios() for seed in SEEDS.get(name, (0, 1, 2))]


@cache
def play(name: str, policy: str, seed: int) -> Report:
    return run(setting_of(read_stage(name), read_rules(policy), seed=seed)).report


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_the_default_policy_keeps_every_cap_and_shuts_nothing_down(name: str, seed: int) -> None:
    report = play(name, "default", seed)
    assert report.truth == "perturbed"
    assert (report.cap_violation_seconds, report.shutdowns, report.trips) == (0.0, 0, 0)


# Halls that are asked for more than their power carries: who does not mind caps breaks them for days there,
# and nothing trips. What that scenario is about is tested with what rents (tests/twin/test_renting.py).
WITHIN_CAPS = [case for case in CASES if case[0] != "spot-reclaim"]


@pytest.mark.parametrize(("name", "seed"), WITHIN_CAPS)
def test_the_default_policy_gets_more_done_than_power_blind_packing(name: str, seed: int) -> None:
    ours, theirs = play(name, "default", seed), play(name, "power-blind", seed)
    assert ours.jobs.submitted == theirs.jobs.submitted
    ratio = set_side_by_side(read_stage(name), ours, theirs).useful_gpu_hours_ratio
    assert ratio is not None
    assert ratio > 1.0


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("burst", "throttle_gpu_seconds"),
        ("feed-loss", "trips"),
        ("grid-event", "trips"),
        ("heatwave", "throttle_gpu_seconds"),
        ("pump-trip", "shutdowns"),
        ("wan-brownout", "throttle_gpu_seconds"),
    ],
)
def test_each_scenario_hurts_who_looks_at_free_gpus_alone(name: str, figure: str) -> None:
    seed = SEEDS.get(name, (0,))[0]
    assert getattr(play(name, "power-blind", seed), figure) > getattr(play(name, "default", seed), figure)


def test_a_stopped_pump_has_load_shed_before_anything_throttles() -> None:
    """Whoever waits a minute loses the nodes: packing shows that the load was there to lose them."""
    ours, theirs = play("pump-trip", "default", 0), play("pump-trip", "power-blind", 0)
    assert theirs.shutdowns > 50
    assert ours.shutdowns == 0
    assert ours.preemptions > 20
    assert ours.throttle_gpu_seconds < 0.01 * theirs.throttle_gpu_seconds
    assert ours.lost_gpu_hours.restart < 0.1 * theirs.lost_gpu_hours.restart


def test_the_same_scenario_and_seed_give_the_same_run() -> None:
    again = run(setting_of(read_stage("feed-loss"), read_rules("default"), seed=0)).report
    assert again.digest == play("feed-loss", "default", 0).digest
