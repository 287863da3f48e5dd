"""How long jobs of a cluster take, by those that ended lately, and how right that was."""

from __future__ import annotations

import math
from random import Random

import pytest
from bench.estimates import Ran, estimate_philly

from building import MONDAY, a_job, a_world
from shared_data import shared_data
from wattline.twin.experience import P90, Experience, Level, experience_of, group_of
from wattline.twin.traces import read_trace

GROUP = group_of("nlp", 1)


def test_nothing_is_known_before_something_ended() -> None:
    assert Experience().expect(GROUP, MONDAY) is None


def test_an_overrun_is_learnt_when_it_happens_not_when_the_job_ends() -> None:
    experience = Experience()
    for number in range(100):
        experience.end(f"j{number}", GROUP, MONDAY + number, 60.0)
    at = MONDAY + 200.0
    before = experience.submit("long", GROUP, at)
    experience.begin("long", at)
    same, later = experience.expect(GROUP, at + 10.0), experience.expect(GROUP, at + 1000.0)
    assert before is not None
    assert same == before
    assert later is not None
    assert later.p90_seconds > before.p90_seconds


def test_the_level_stays_within_its_bounds() -> None:
    missing, holding = Level(), Level()
    for _ in range(10_000):
        missing.learn(missed=True)
        holding.learn(missed=False)
    assert (holding.value, missing.value) == (0.87, 0.95)


def test_a_level_rests_where_one_in_ten_is_missed() -> None:
    level, random = Level(), Random(7)
    for _ in range(5000):
        level.learn(missed=random.random() > level.value)
    assert level.value == pytest.approx(P90, abs=0.03)


def test_a_states_ended_jobs_are_its_experience() -> None:
    hall = a_world()
    for number in range(30):
        hall.run(a_job(f"r{number}/train"))
        hall.wait(300.0)
        hall.ended(f"r{number}/train")
    middle = hall.at - 15 * 300.0
    assert experience_of(hall.state, middle).history.weight(GROUP) == pytest.approx(15.0, rel=0.05)
    expected = experience_of(hall.state, hall.at).expect(GROUP, hall.at)
    assert expected is not None
    assert expected.p50_seconds == pytest.approx(300.0, rel=0.16)


def test_philly_is_covered_nine_times_in_ten_and_better_than_by_its_plain_quantiles() -> None:
    """Without a replay, as if every job began when it came; `python -m bench.estimates` has the replay."""
    trace = read_trace(shared_data("jobs/philly.csv.gz"))
    jobs = [
        Ran(
            name=job.name,
            group=group_of(job.project, job.gpus),
            came_at=job.arrives_seconds,
            began_at=job.arrives_seconds,
            ended_at=job.arrives_seconds + job.work_seconds,
            seconds=job.work_seconds,
        )
        for job in trace.jobs[:40_000]
    ]
    first_half, all_ended, ours = estimate_philly(jobs)
    assert ours.jobs == 20_000
    assert 0.85 <= ours.covered / ours.jobs <= 0.95
    assert ours.loss_hours < min(first_half.loss_hours, all_ended.loss_hours)
    assert ours.log_loss < min(first_half.log_loss, all_ended.log_loss)
    assert math.isfinite(ours.loss_hours)
