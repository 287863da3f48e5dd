from __future__ import annotations

import pytest

from building import MONDAY, a_job, a_policy, a_world
from wattline.policy.explaining.week import (
    QuotaWeek,
    TeamWeek,
    take_of_run,
    teams_of,
    week_of_team,
)
from wattline.state import ExceptionAnswered, ExceptionAsked, Usage

HOUR = 3600.0


def gpu_hours(week: TeamWeek) -> QuotaWeek:
    return week.quotas[0]


def test_a_week_is_what_was_used_what_is_promised_and_what_is_left() -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"quota": {"gpu_hours": 20}}}))
    hall.run(a_job("r1/train", gpus=2, max_duration_seconds=HOUR))
    hall.ended("r1/train", usage=Usage(gpu_hours=1.5))
    hall.run(a_job("r2/train", gpus=8, max_duration_seconds=HOUR))
    hall.submit(a_job("r3/train", gpus=16, max_duration_seconds=HOUR / 4))
    hall.decide()
    week = week_of_team(hall.snapshot(), hall.policy, "nlp")
    quota = gpu_hours(week)
    assert (quota.limit, quota.used, quota.promised, quota.left) == (20.0, 1.5, 8.0, 10.5)
    assert (week.running, week.waiting) == (("r2/train",), ("r3/train",))
    assert (week.running_gpus, week.waiting_gpus) == (8, 16)
    assert week.quotas[1].limit is None
    assert week.quotas[1].left is None


@pytest.mark.parametrize(("limit", "hours"), [(80.0, 10.0), (8 * 168.0, None)])
def test_a_limit_is_reached_at_the_rate_of_what_runs_now(limit: float, hours: float | None) -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"quota": {"gpu_hours": limit}, "limit": "soft"}}))
    hall.run(a_job(gpus=8, max_duration_seconds=300 * HOUR))
    hall.wait(2 * HOUR)
    quota = gpu_hours(week_of_team(hall.snapshot(), hall.policy, "nlp"))
    assert quota.rate_per_hour == 8.0
    assert quota.reaches_at == (None if hours is None else MONDAY + hours * HOUR)


def test_a_job_counts_until_it_must_end_and_no_longer() -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"quota": {"gpu_hours": 40}, "limit": "soft"}}))
    hall.run(a_job("r1/train", gpus=8, max_duration_seconds=2 * HOUR))
    hall.wait(HOUR)
    assert gpu_hours(week_of_team(hall.snapshot(), hall.policy, "nlp")).reaches_at is None
    hall.run(a_job("r2/train", gpus=4))
    quota = gpu_hours(week_of_team(hall.snapshot(), hall.policy, "nlp"))
    # 8 are gone; in the next hour it is twelve, then four an hour: 20 more take five.
    assert (quota.rate_per_hour, quota.reaches_at) == (12.0, MONDAY + 7 * HOUR)


def test_what_nobody_conducts_uses_nothing() -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"quota": {"gpu_hours": 9}}}))
    hall.run(a_job(gpus=8, max_duration_seconds=HOUR))
    quota = gpu_hours(week_of_team(hall.snapshot(), hall.policy, "nlp", is_conducted=False))
    assert (quota.rate_per_hour, quota.reaches_at, quota.promised) == (0.0, None, 8.0)


def test_an_exception_makes_a_week_longer() -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {"quota": {"gpu_hours": 9}}}))
    asked = ExceptionAsked(
        at=MONDAY,
        actor="ada",
        project="nlp",
        key="k",
        rule="quota.gpu_hours",
        amount=3.0,
        until=MONDAY + HOUR,
        because="a deadline",
    )
    hall.fold(asked, ExceptionAnswered(at=MONDAY, actor="joan", exception="ex-1", approved=True))
    quota = gpu_hours(week_of_team(hall.snapshot(), hall.policy, "nlp"))
    assert (quota.limit, quota.granted, quota.left) == (12.0, 3.0, 12.0)
    hall.wait(HOUR)
    assert gpu_hours(week_of_team(hall.snapshot(), hall.policy, "nlp")).limit == 9.0


def test_projects_that_the_policy_does_not_name_come_last() -> None:
    hall = a_world(policy=a_policy(teams={"nlp": {}, "audio": {}}))
    hall.submit(a_job(project="robots"))
    assert teams_of(hall.snapshot(), hall.policy) == ["nlp", "audio", "robots"]
    assert week_of_team(hall.snapshot(), hall.policy, "robots").limit == "none"


def test_a_run_takes_what_it_used_what_it_was_promised_and_the_most_that_is_to_come() -> None:
    hall = a_world()
    first = a_job("r1/prepare", gpus=1, max_duration_seconds=HOUR)
    second = a_job("r1/train", gpus=4, max_duration_seconds=HOUR, after=("r1/prepare",))
    third = a_job("r1/evaluate", gpus=1, after=("r1/train",))
    hall.submit(first, second, third)
    hall.obey(hall.decide())
    take = take_of_run(hall.snapshot(), hall.policy, "r1", ["r1/prepare", "r1/train", "r1/evaluate"])
    assert (take.promised.gpu_hours, take.still.gpu_hours) == (1.0, 4.0)
    assert take.sites == (next(iter(hall.snapshot().plant.facility.sites)).name,)
    assert take.not_estimated == ("evaluate",), "it does not say how long it may run"
    hall.ended("r1/prepare", usage=Usage(gpu_hours=0.5))
    take = take_of_run(hall.snapshot(), hall.policy, "r1", ["r1/prepare", "r1/train", "r1/evaluate"])
    assert (take.used.gpu_hours, take.promised.gpu_hours) == (0.5, 0.0)
