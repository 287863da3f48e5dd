"""Queues that are too long: who comes is told at once, with when to come again and what would start now."""

from __future__ import annotations

import pytest

from building import MONDAY, Hall, a_device, a_job, a_policy, a_site, a_world, kinds
from wattline.policy import decide
from wattline.state import Expected, Forecasted, JobState, RunSubmitted, Snapshot, dump_state, load_state

HOUR = 3600.0


def a_full_hall(**queue: object) -> Hall:
    """One node of eight GPUs, all of them taken for ten hours."""
    hall = a_world(a_site(nodes=1), policy=a_policy(queue=queue) if queue else a_policy())
    hall.run(a_job("r0/train", gpus=8, max_duration_seconds=10 * HOUR))
    return hall


def come(hall: Hall, wait: float | None, job: str = "r1/train", **changes: object) -> list[tuple[str, str]]:
    """A job is submitted, with a forecast of its wait; what is decided."""
    request = a_job(job, gpus=8, **changes)
    submitted = RunSubmitted(at=hall.at, run=request.run, pipeline="p", jobs=(request,), project="nlp")
    told = () if wait is None else (Expected(job, hall.at + wait, hall.at + 2 * wait),)
    hall.fold(submitted, Forecasted(at=hall.at - 30, starts=told, samples=16, horizon_seconds=7 * 24 * HOUR))
    return kinds(hall.decide())


@pytest.mark.parametrize(
    ("wait", "decided"), [(4 * HOUR, []), (4 * HOUR + 1, [("refuse", "r1/train")])], ids=["within", "over"]
)
def test_who_would_wait_longer_than_the_bound_is_refused(wait: float, decided: list[tuple[str, str]]) -> None:
    assert come(a_full_hall(max_wait="4h"), wait) == decided


def test_a_refusal_says_how_long_when_to_come_again_and_what_would_start_now() -> None:
    hall = a_full_hall(max_wait="2h")
    hall.ended("r0/train")
    hall.run(a_job("half/train", gpus=4, max_duration_seconds=10 * HOUR))
    come(hall, 5 * HOUR)
    verdict = next(one for one in hall.decisions[-1].verdicts if one.rule == "queue.wait")
    assert verdict.numbers == {
        "wait_p50_seconds": 5 * HOUR,
        "wait_p90_seconds": 10 * HOUR,
        "limit_seconds": 2 * HOUR,
        "over_by_seconds": 3 * HOUR,
        "forecast_age_seconds": 30.0,
    }
    assert hall.job().state is JobState.REFUSED
    assert "submit again at 1970-01-05 03:00 UTC, by this forecast. Starts now with 4 GPUs" in hall.job().say
    hall.submit(a_job("r2/train", gpus=4))
    assert kinds(hall.decide()) == [("start", "r2/train")]


def test_who_comes_again_when_told_does_not_come_too_early() -> None:
    hall = a_full_hall(max_wait="2h")
    come(hall, 5 * HOUR + 1.0)
    assert "wait p50 5 h, wait p90 10 h, limit 2 h, over by 3 h, forecast age 30 s" in hall.job().say
    assert "submit again at 1970-01-05 03:01 UTC" in hall.job().say, "a minute that is told has not begun"


def test_another_class_is_offered_where_it_would_start_and_does() -> None:
    classes = {"bulk": {"max_gpus": 8, "queue": {"max_wait": "1h"}}, "quick": {"priority": 5}}
    hall = a_world(a_site(nodes=2), policy=a_policy(classes=classes))
    hall.run(a_job("r0/train", gpus=8, scheduling_class="bulk"))
    assert come(hall, 5 * HOUR, scheduling_class="bulk") == [("refuse", "r1/train")]
    assert "Starts now in class quick" in hall.job().say
    hall.submit(a_job("r2/train", gpus=8, scheduling_class="quick"))
    assert kinds(hall.decide()) == [("start", "r2/train")]


def test_a_cap_and_another_gpu_are_offered_and_start_it() -> None:
    sites = a_site(nodes=2, rack_cap_watts=5600.0), a_site("oslo", nodes=1, device=a_device("H100"))
    hall = a_world(*sites, policy=a_policy(queue={"max_wait": "1h"}))
    hall.run(a_job("r0/train", gpus=8, gpu_models=("A100",)))
    assert come(hall, 5 * HOUR, gpu_models=("A100",)) == [("refuse", "r1/train")]
    said = hall.job().say
    assert "capped to 75 %" in said
    assert "it accepts H100 too" in said
    hall.submit(a_job("r2/train", gpus=8, gpu_models=("A100",), peak_watts=2400.0))
    assert kinds(hall.decide()) == [("start", "r2/train")]


def test_a_warning_lets_the_job_in_and_says_the_same() -> None:
    hall = a_full_hall(max_wait="2h", mode="warn")
    assert come(hall, 5 * HOUR) == []
    warned = next(one for one in hall.decisions[-1].verdicts if one.rule == "queue.wait")
    assert warned.outcome == "warn"
    assert "submit again at" in warned.change
    assert hall.job().state is JobState.WAITING


def test_without_a_forecast_nobody_is_refused_and_that_is_said() -> None:
    hall = a_full_hall(max_wait="2h")
    assert come(hall, None) == []
    said = next(one for one in hall.decisions[-1].verdicts if one.rule == "queue.wait").say
    assert said == "not judged against 2 h: nobody has forecast when it starts"


def test_a_start_beyond_all_that_was_looked_at_is_too_late() -> None:
    hall = a_full_hall(max_wait="2h")
    hall.submit(a_job(gpus=8))
    hall.fold(
        Forecasted(
            at=hall.at, starts=(Expected("r1/train", None, None),), samples=16, horizon_seconds=HOUR * 50
        )
    )
    assert kinds(hall.decide()) == [("refuse", "r1/train")]
    assert "not expected within 2.08 d" in hall.job().say


def test_who_starts_at_once_is_asked_nothing() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(queue={"max_wait": "1s", "max_waiting_jobs": 1}))
    assert come(hall, 5 * HOUR) == [("start", "r1/train")]


def test_who_was_let_in_is_never_turned_away_for_the_length_of_a_queue() -> None:
    hall = a_full_hall(max_wait="2h")
    assert come(hall, HOUR) == []
    hall.wait(60)
    late = (Expected("r1/train", hall.at + 9 * HOUR, None),)
    hall.fold(Forecasted(at=hall.at, starts=late, samples=16, horizon_seconds=99 * HOUR))
    assert kinds(hall.decide()) == []


def test_so_many_may_wait_and_who_comes_when_they_do_is_told_when_the_first_will_have_started() -> None:
    hall = a_full_hall(max_waiting_jobs=2)
    requests = [a_job(f"j{n}/train", gpus=8) for n in range(4)]
    hall.submit(*requests)
    starts = tuple(Expected(one.job, hall.at + HOUR * (5 + n), None) for n, one in enumerate(requests))
    hall.fold(Forecasted(at=hall.at, starts=starts, samples=16, horizon_seconds=99 * HOUR))
    assert kinds(hall.decide()) == [("refuse", "j2/train"), ("refuse", "j3/train")]
    assert "submit again at 1970-01-05 05:00 UTC" in hall.job("j2/train").say
    assert "waiting jobs 2" in hall.job("j2/train").say


def test_a_team_and_a_class_count_their_own_alone() -> None:
    policy = a_policy(
        teams={"nlp": {"queue": {"max_waiting_jobs": 1}}},
        classes={"bulk": {"queue": {"max_waiting_jobs": 1}}},
    )
    hall = a_world(a_site(nodes=1), policy=policy)
    hall.run(a_job("r0/train", gpus=8, project="vision"))
    hall.submit(*[a_job(f"v{n}/train", gpus=8, project="vision") for n in range(3)])
    hall.submit(a_job("n1/train", gpus=8), a_job("n2/train", gpus=8))
    hall.submit(*[a_job(f"b{n}/train", gpus=8, project="b", scheduling_class="bulk") for n in (1, 2)])
    assert kinds(hall.decide()) == [("refuse", "b2/train"), ("refuse", "n2/train")]


def test_a_shape_whose_only_job_was_turned_away_is_tried_again_when_one_comes() -> None:
    hall = a_full_hall(max_wait="2h")
    come(hall, 5 * HOUR)
    hall.ended("r0/train")
    hall.decide()
    hall.submit(a_job("r2/train", gpus=8))
    assert kinds(hall.decide()) == [("start", "r2/train")]


def test_who_came_since_the_last_decision_survives_a_dump() -> None:
    hall = a_full_hall(max_wait="2h")
    hall.submit(a_job(gpus=8))
    late = (Expected("r1/train", hall.at + 9 * HOUR, None),)
    hall.fold(Forecasted(at=hall.at, starts=late, samples=16, horizon_seconds=99 * HOUR))
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert decide(Snapshot(loaded, hall.at), hall.policy) == decide(hall.snapshot(), hall.policy)


def test_a_later_phase_is_not_refused_for_the_queue_it_meets() -> None:
    hall = a_world(a_site(nodes=1), policy=a_policy(queue={"max_waiting_jobs": 1}))
    hall.run(a_job("r1/train", gpus=8))
    hall.submit(a_job("r2/train", gpus=8))
    hall.fold(
        RunSubmitted(
            at=MONDAY,
            run="r3",
            pipeline="p",
            jobs=(a_job("r3/prepare", gpus=0), a_job("r3/train", gpus=8, after=("r3/prepare",))),
        )
    )
    hall.obey(hall.decide())
    hall.ended("r3/prepare")
    assert kinds(hall.decide()) == []
    assert hall.job("r3/train").state is JobState.WAITING
