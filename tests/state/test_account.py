"""What a team has used this week and what it was promised."""

from __future__ import annotations

import pytest

from building import MONDAY, a_device, a_job, a_site, a_world
from wattline.state import Ending, Usage, dump_state, load_state, seconds_left, week_ends_at
from wattline.state.account import WEEK_SECONDS, Promised, week_of


@pytest.mark.parametrize("ending", list(Ending))
def test_what_was_promised_is_released_however_an_attempt_ends(ending: Ending) -> None:
    hall = a_world(a_site(device=a_device(usd_per_hour=2.0), usd_per_kwh=0.5))
    hall.run(a_job(gpus=8, max_duration_seconds=7200.0))
    promised = hall.state.accounts["nlp"].committed
    assert promised.gpu_hours == 16.0
    assert promised.kwh == pytest.approx(6.4)
    assert promised.usd == pytest.approx(32.0 + 3.2)
    assert promised.kg_co2e == pytest.approx(0.64)
    hall.ended("r1/train", ending, Usage(gpu_hours=4.0))
    assert hall.state.accounts["nlp"].promised == Promised()
    assert hall.state.accounts["nlp"].committed == Usage(gpu_hours=4.0)


def test_a_week_begins_on_monday_at_midnight_utc() -> None:
    assert week_of(MONDAY - 1) + 1 == week_of(MONDAY) == week_of(MONDAY + WEEK_SECONDS - 1)
    assert week_ends_at(MONDAY) == week_ends_at(MONDAY + WEEK_SECONDS - 1) == MONDAY + WEEK_SECONDS
    monday_2026_11_16 = 1794787200.0
    assert week_ends_at(monday_2026_11_16 - 1) == monday_2026_11_16


def test_what_was_used_counts_until_the_week_ends_and_promises_outlive_it() -> None:
    hall = a_world()
    hall.run(a_job("r1/train", max_duration_seconds=3600.0), a_job("r2/train", max_duration_seconds=3600.0))
    hall.wait(WEEK_SECONDS - 1)
    hall.ended("r1/train", usage=Usage(gpu_hours=5.0))
    assert hall.snapshot().account("nlp").committed.gpu_hours == 6.0
    hall.wait(1)
    assert hall.snapshot().account("nlp").committed.gpu_hours == 1.0
    hall.ended("r2/train", usage=Usage(gpu_hours=2.0))
    assert hall.state.accounts["nlp"].used.gpu_hours == 2.0


def test_accounts_survive_a_dump() -> None:
    hall = a_world()
    hall.run(a_job(max_duration_seconds=3600.0))
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert loaded.accounts == hall.state.accounts


def test_the_time_that_earlier_attempts_ran_is_spent() -> None:
    hall = a_world()
    hall.run(a_job(max_duration_seconds=3600.0))
    hall.wait(600)
    hall.ended("r1/train", Ending.LOST)
    assert seconds_left(hall.job()) == 3000.0
    hall.decide()
    hall.wait(600)
    hall.ended("r1/train", Ending.LOST)  # it never started
    assert seconds_left(hall.job()) == 3000.0


def test_a_job_without_an_end_has_no_time_left_to_count() -> None:
    hall = a_world()
    hall.run(a_job())
    hall.ended("r1/train", Ending.LOST)
    assert seconds_left(hall.job()) is None
