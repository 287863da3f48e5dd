"""How long a job still takes: what is known best counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import MONDAY, a_job, a_world
from wattline.state import Ending, Job, JobState, Past
from wattline.twin.remaining import Lasted, draw_seconds_left, gather_lasted, lasted_of

lots = st.floats(0.0, 1.0)


def running(
    seconds: float = 100.0, *, limit: float | None = None, step: int = 0, total: int | None = None
) -> Job:
    return Job(
        request=a_job(max_duration_seconds=limit),
        state=JobState.RUNNING,
        submitted_at=MONDAY,
        since=MONDAY,
        started_at=MONDAY - seconds,
        step=step,
        total=total,
    )


@given(lots)
def test_progress_counts_before_all_else(lot: float) -> None:
    job = running(100.0, limit=1e6, step=20, total=60)
    assert draw_seconds_left(job, MONDAY, lot, [Lasted(1e5)]) == pytest.approx(200.0, rel=0.101)


@given(lots)
def test_then_what_the_phase_took_before_where_that_was_longer(lot: float) -> None:
    left = draw_seconds_left(running(100.0, limit=1e6), MONDAY, lot, [Lasted(50.0), Lasted(160.0)])
    assert left == pytest.approx(60.0, abs=16.01)


def test_one_that_ended_and_one_that_still_runs_leave_half_of_the_lots_to_what_is_longer() -> None:
    others = [Lasted(200.0), Lasted(400.0, goes_on=True)]
    short, long = (draw_seconds_left(running(100.0, limit=1e6), MONDAY, lot, others) for lot in (0.4, 0.6))
    assert short < 120.0
    assert long > 100.0 + 0.1 * 1e6


@given(lots)
def test_then_the_limit_bounds_it(lot: float) -> None:
    assert 1.0 <= draw_seconds_left(running(100.0, limit=400.0), MONDAY, lot, [Lasted(50.0)]) <= 300.0


@given(lots, st.floats(0.0, 1e7))
def test_else_there_is_always_something_left(lot: float, worked: float) -> None:
    assert draw_seconds_left(running(worked), MONDAY, lot, ()) >= 1.0


def test_who_has_run_for_longer_will_run_for_longer() -> None:
    ages = (60.0, 600.0, 6e3, 6e4, 6e5)
    left = [draw_seconds_left(running(seconds), MONDAY, 0.5, ()) for seconds in ages]
    assert left == sorted(left)


def test_half_of_those_that_nothing_is_known_of_end_within_the_median_of_a_cluster() -> None:
    assert draw_seconds_left(running(0.0), MONDAY, 0.5, ()) == pytest.approx(1042.0)


def test_all_attempts_count_as_work() -> None:
    past = Past(1, None, Ending.LOST, MONDAY - 500, MONDAY - 400, 10)
    waiting = Job(
        request=a_job(max_duration_seconds=400.0),
        state=JobState.WAITING,
        submitted_at=0.0,
        since=MONDAY,
        started_at=MONDAY - 500,
        past=(past,),
    )
    assert draw_seconds_left(waiting, MONDAY, 1.0, ()) == 300.0


def test_only_what_succeeded_teaches_and_only_its_own_phase() -> None:
    hall = a_world()
    for name, ending, seconds in (("r0", Ending.SUCCEEDED, 60.0), ("r1", Ending.STOPPED, 10.0)):
        hall.run(a_job(f"{name}/train"))
        hall.wait(seconds)
        hall.ended(f"{name}/train", ending)
    hall.run(a_job("r2/train"), a_job("r2/evaluate"))
    hall.wait(5.0)
    known = gather_lasted(hall.state, hall.at)
    assert known["p", "train"] == [Lasted(5.0, goes_on=True), Lasted(60.0)]
    assert lasted_of(hall.job("r2/evaluate"), hall.state, known, {}) == [Lasted(5.0, goes_on=True)]


@given(lots)
def test_jobs_that_use_all_the_time_they_ask_for_are_taken_at_their_word(lot: float) -> None:
    assert draw_seconds_left(running(100.0, limit=400.0), MONDAY, lot, (), [0.1, *[1.0] * 30]) == 300.0


@given(lots)
def test_who_has_used_more_than_others_did_is_drawn_from_those_that_used_as_much(lot: float) -> None:
    left = draw_seconds_left(running(300.0, limit=400.0), MONDAY, lot, (), [*[0.2] * 30, 0.8, 0.9])
    assert left in (pytest.approx(20.0), pytest.approx(60.0))


def test_a_phase_that_never_ended_is_taken_as_others_with_as_many_gpus() -> None:
    hall = a_world()
    hall.run(a_job("r0/train", gpus=2), a_job("r1/train", gpus=2, max_duration_seconds=60.0))
    hall.wait(5.0)
    known, alike = gather_lasted(hall.state, hall.at), [Lasted(10.0)]
    assert lasted_of(hall.job("r0/train"), hall.state, known, {2: alike}) == alike
    assert lasted_of(hall.job("r0/train"), hall.state, known, {1: alike}) == known["p", "train"]
    assert lasted_of(hall.job("r1/train"), hall.state, known, {2: alike}) == known["p", "train"]
