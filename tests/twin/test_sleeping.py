"""Nodes that sleep and wake in the twin: what they draw, how long they take, and what a replay shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from building import MONDAY, Hall, a_facility, a_job, a_policy, a_site
from wattline.facility import Facility, Sleep
from wattline.spec import Fault
from wattline.spec.policy import Policy
from wattline.state import NodeMode, Plant
from wattline.twin.forecast import TwinForecaster
from wattline.twin.report import Report, ScalingReport
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.truth import Truth
from wattline.twin.workload import Arrival

SLEEP = Sleep(wake_seconds=120.0, asleep=0.1)
HOUR = 3600.0
SLEEPY = {"sleep_after": "10min", "most_warm": 0}


def a_hall(nodes: int = 4) -> Facility:
    return a_facility(a_site(nodes=nodes, gpus=8, other_watts=1000.0, rack_cap_watts=60_000.0, sleep=SLEEP))


def every(seconds: float, count: int, gpus: int = 8) -> Iterator[Arrival]:
    for number in range(count):
        request = a_job(f"r{number}/train", gpus=gpus)
        yield Arrival(
            at=BEGINS_AT + 60.0 + seconds * number, request=request, work_seconds=600.0, utilisation=0.9
        )


def play(policy: Policy, *faults: Fault, gap: float = HOUR, jobs: int = 5, hours: float = 6.0) -> Report:
    setting = Setting(
        name="trickle",
        facility=a_hall(),
        policy=policy,
        arrivals=lambda: every(gap, jobs),
        faults=faults,
        until_seconds=hours * HOUR,
    )
    return run(setting).report


def scaling_of(report: Report) -> ScalingReport:
    assert isinstance(report.scaling, ScalingReport)
    return report.scaling


def mean_minutes(report: Report) -> float:
    assert report.completion_minutes.mean is not None
    return report.completion_minutes.mean


def test_a_sleeping_node_draws_its_share_of_idle_and_takes_no_work() -> None:
    plant = Plant(a_hall(nodes=1))
    truth = Truth(plant, seed=0, exact=True, at=0.0)
    rack = plant.resource_number["zurich/r1"]
    awake = truth.resource_watts(rack)
    assert truth.send_to_sleep(0, 1.0, asleep=True)
    assert truth.resource_watts(rack) == pytest.approx(0.1 * awake)
    truth.load("r1/train", [(0, 8)], 1.0, 1.0, 2.0)
    assert truth.pace("r1/train") == 0.0
    truth.unload("r1/train", 3.0)
    assert truth.send_to_sleep(0, 4.0, asleep=False)
    assert truth.resource_watts(rack) == pytest.approx(awake)


def test_a_node_that_works_cannot_be_sent_to_sleep() -> None:
    truth = Truth(Plant(a_hall(nodes=1)), seed=0, exact=True, at=0.0)
    truth.load("r1/train", [(0, 1)], 1.0, 1.0, 1.0)
    assert not truth.send_to_sleep(0, 2.0, asleep=True)


def test_sleep_saves_energy_and_costs_waits_as_long_as_waking_takes() -> None:
    awake, sleepy = play(a_policy()), play(a_policy(scaling=SLEEPY))
    scaling = scaling_of(sleepy)
    assert sleepy.energy_kwh < 0.5 * awake.energy_kwh
    assert sleepy.jobs.completed == awake.jobs.completed == 5
    assert (scaling.starts, scaling.cold_starts, scaling.hit_rate) == (5, 5, 0.0)
    assert scaling.cold_start_seconds == pytest.approx(120.0)
    assert sleepy.completion_minutes.mean == pytest.approx(mean_minutes(awake) + 2.0)
    assert (scaling.wakes, scaling.failed_wakes) == (5, 0)
    assert 14.0 < scaling.asleep_node_hours < 17.0  # of four nodes in four hours and a bit


def test_a_warm_node_spares_the_wait() -> None:
    warm = scaling_of(play(a_policy(scaling={**SLEEPY, "least_warm": 1, "most_warm": 1})))
    assert (warm.cold_starts, warm.hit_rate, warm.cold_start_seconds) == (0, 1.0, None)


def test_the_pool_learns_to_keep_a_node_warm_for_those_who_keep_coming() -> None:
    learnt = scaling_of(play(a_policy(scaling={"sleep_after": "10min"}), gap=1800.0, jobs=10))
    assert learnt.cold_starts == 1


def test_a_replay_without_scaling_says_nothing_of_it() -> None:
    report = play(a_policy())
    assert not isinstance(report.scaling, ScalingReport)
    assert "scaling" not in report.not_estimated


def test_a_rack_that_does_not_wake_is_reported_and_its_jobs_wait_until_it_does() -> None:
    fault = Fault.model_validate(
        {"name": "bmc", "at": {"after": "0s"}, "lasts": "2h", "rack": "zurich/r1", "wakes": False}
    )
    report = play(a_policy(scaling=SLEEPY), fault, jobs=1, hours=8.0)
    scaling = scaling_of(report)
    assert scaling.failed_wakes > 0
    assert report.jobs.completed == 1
    assert report.completion_minutes.mean == pytest.approx(130.0, abs=20.0)


def test_the_same_seed_gives_the_same_digest() -> None:
    policy = a_policy(scaling={"sleep_after": "10min"})
    assert play(policy).digest == play(policy).digest


def test_a_forecast_waits_for_the_node_that_wakes() -> None:
    hall = Hall(a_hall(nodes=1), a_policy(scaling={"sleep_after": "10min"}), MONDAY)
    hall.obey(hall.decide())
    hall.submit(a_job("r1/train", gpus=1, max_duration_seconds=HOUR))
    hall.decide()
    assert len(hall.state.resting.modes[NodeMode.WAKING]) == 1
    hall.wait(20)
    forecast = TwinForecaster(samples=5).forecast(hall.state, hall.policy, hall.at)
    assert forecast is not None
    (expected,) = forecast.starts
    assert expected.p50_at == pytest.approx(hall.at + 100.0, abs=1.0)


def test_shifting_and_scaling_go_together() -> None:
    report = play(a_policy(scaling=SLEEPY, shifting={"by": "carbon"}))
    assert scaling_of(report).starts == 5
    assert report.jobs.completed == 5
