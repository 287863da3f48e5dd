"""Elastic jobs: begun narrower, made narrower for others, and wider where nobody waits."""

from __future__ import annotations

from typing import Any

import pytest

from building import Hall, a_job, a_policy, a_site, a_world, assert_ledger_is_true, kinds
from wattline.policy import explain
from wattline.state import Decision, Ending, JobRequest, JobState, Progressed, elastic_request, seconds_left

HOUR = 3600.0
RESIZING = {"least_time": "10min", "restart": "60s"}


def a_hall(*, nodes: int = 1, rack_cap_watts: float = 1e6, **policy: Any) -> Hall:
    site = a_site(nodes=nodes, gpus=8, rack_cap_watts=rack_cap_watts)
    return a_world(site, policy=a_policy(resizing=RESIZING, **policy))


def elastic(
    name: str = "r1/train", *, gpus: int = 8, least: int = 4, most: int = 8, **changes: Any
) -> JobRequest:
    changes = {"checkpoints": True, "max_duration_seconds": 10 * HOUR} | changes
    return elastic_request(a_job(name, gpus=gpus, **changes), least, most)


def turn(hall: Hall, seconds: float = 0.0) -> Decision:
    hall.wait(seconds)
    decision = hall.decide()
    hall.obey(decision)
    return decision


def width(hall: Hall, name: str = "r1/train") -> int:
    return hall.job(name).request.gpus


def test_one_that_does_not_fit_begins_at_the_widest_width_that_does() -> None:
    hall = a_hall()
    hall.run(a_job("big/train", gpus=3))
    hall.submit(elastic())
    decision = turn(hall)
    assert kinds(decision) == [("start", "r1/train")]
    assert width(hall) == 5
    said = next(verdict for verdict in decision.verdicts if verdict.rule == "resizing.start")
    assert said.numbers["given_gpus"] == 5
    assert said.numbers["asked_gpus"] == 8
    assert said.numbers["speed_fraction"] == pytest.approx((5 / 8) ** 0.9)
    assert_ledger_is_true(hall.state)


@pytest.mark.parametrize(("taken", "begins"), [(4, True), (5, False)])
def test_none_begins_below_its_least(taken: int, begins: bool) -> None:
    hall = a_hall()
    hall.run(a_job("big/train", gpus=taken))
    hall.submit(elastic())
    assert bool(hall.decide().actions) is begins


def test_watts_limit_the_width_as_gpus_do() -> None:
    hall = a_hall(rack_cap_watts=3200.0)
    hall.run(a_job("big/train", gpus=2, peak_watts=900.0))
    hall.submit(elastic(peak_watts=3200.0))
    turn(hall)
    job = hall.job()
    assert 4 <= job.request.gpus < 8
    assert job.request.each_watts == pytest.approx(400.0)


def test_one_that_asks_for_more_than_there_is_waits_for_less_and_is_not_refused() -> None:
    hall = a_hall()
    hall.run(a_job("big/train", gpus=8))
    hall.submit(elastic(gpus=16, most=16))
    assert hall.decide().actions == ()
    hall.ended("big/train")
    assert kinds(turn(hall)) == [("start", "r1/train")]
    assert width(hall) == 8


def test_without_resizing_in_the_policy_elastic_jobs_are_as_rigid_as_others() -> None:
    hall = a_world(a_site(nodes=1, gpus=8))
    hall.run(elastic())
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4))
    assert hall.decide().actions == ()
    hall.ended("r1/train")
    turn(hall)
    hall.submit(elastic("third/train"))
    assert hall.decide().actions == ()


def test_one_that_waits_makes_another_narrower_and_both_run() -> None:
    hall = a_hall()
    hall.run(elastic())
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=3))
    decision = turn(hall, 1.0)
    assert kinds(decision) == [("pause", "r1/train")]
    assert "5 of 8 GPUs: makes room for second/train" in decision.actions[0].because
    said = next(verdict for verdict in decision.verdicts if verdict.rule == "resizing.shrink")
    assert (said.numbers["held_gpus"], said.numbers["given_gpus"]) == (8, 5)
    assert said.numbers["lost_gpu_seconds"] > 0
    assert hall.job().state is JobState.PAUSED
    assert kinds(turn(hall, 1.0)) == [("resume", "r1/train"), ("start", "second/train")]
    place = hall.job().place
    assert place is not None
    assert place.gpus == width(hall) == 5
    assert hall.state.account(hall.job().request.project).share.gpus == 8
    assert_ledger_is_true(hall.state)


def test_it_grows_back_when_the_other_has_left() -> None:
    hall = a_hall()
    hall.run(elastic())
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4))
    turn(hall)
    turn(hall, 1.0)
    hall.wait(HOUR)
    hall.ended("second/train")
    decision = turn(hall)
    assert kinds(decision) == [("pause", "r1/train")]
    said = next(verdict for verdict in decision.verdicts if verdict.rule == "resizing.grow")
    assert (said.numbers["held_gpus"], said.numbers["given_gpus"]) == (4, 8)
    assert said.numbers["saved_seconds"] > said.numbers["away_seconds"] > 0
    turn(hall, 1.0)
    assert width(hall) == 8
    assert hall.job().state is JobState.RUNNING
    assert hall.decide().actions == ()


def test_no_width_is_left_before_it_was_kept_for_its_time() -> None:
    hall = a_hall()
    hall.run(elastic())
    hall.wait(100.0)
    hall.submit(a_job("second/train", gpus=4))
    decision = hall.decide()
    assert decision.actions == ()
    assert decision.revisit_at is not None
    assert decision.revisit_at <= hall.at + 500.0
    assert kinds(turn(hall, 500.0)) == [("pause", "r1/train")]


def test_what_one_has_beyond_what_it_asked_for_is_given_back_at_once() -> None:
    hall = a_hall()
    hall.run(elastic(gpus=4, least=4))
    turn(hall, 601.0)
    turn(hall)
    assert width(hall) == 8
    hall.submit(a_job("second/train", gpus=2))
    turn(hall, 70.0)
    turn(hall)
    assert width(hall) == 6
    assert hall.job("second/train").state is JobState.RUNNING


def test_nobody_grows_for_the_sake_of_a_minute() -> None:
    hall = a_hall()
    hall.run(a_job("big/train", gpus=4))
    hall.submit(elastic(max_duration_seconds=700.0))
    turn(hall)
    hall.wait(1100.0)
    hall.ended("big/train")
    assert hall.decide().actions == ()


def test_what_its_steps_say_counts_for_more_than_what_it_declared() -> None:
    hall = a_hall()
    hall.run(a_job("big/train", gpus=4))
    hall.submit(elastic())
    turn(hall)
    hall.wait(HOUR)
    hall.fold(Progressed(at=hall.at, job="r1/train", attempt=1, step=990, total=1000))
    hall.ended("big/train")
    assert hall.decide().actions == ()


def test_nobody_grows_where_somebody_waits_for_what_is_free() -> None:
    hall = a_hall()
    hall.run(a_job("big/train", gpus=4))
    hall.submit(elastic())
    turn(hall)
    hall.wait(HOUR)
    hall.submit(a_job("whole/train", gpus=8))
    hall.decide()
    hall.ended("big/train")
    assert hall.decide().actions == ()


def test_two_elastic_jobs_share_a_node_between_them() -> None:
    hall = a_hall()
    hall.run(elastic())
    hall.wait(HOUR)
    hall.submit(elastic("second/train"))
    turn(hall)
    turn(hall, 1.0)
    assert (width(hall), width(hall, "second/train")) == (4, 4)


def test_those_give_first_that_lose_least() -> None:
    hall = a_hall(nodes=2)
    hall.run(
        elastic("slow/train"), elastic_request(a_job("flat/train", gpus=8, checkpoints=True), 4, 8, alpha=0.3)
    )
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4))
    assert kinds(hall.decide()) == [("pause", "flat/train")]


@pytest.mark.parametrize(
    ("classes", "changes", "gives"),
    [
        ({"low": {"priority": 1}, "high": {"priority": 2}}, {"scheduling_class": "low"}, False),
        ({"low": {"priority": 2}, "high": {"priority": 2}}, {"scheduling_class": "low"}, True),
        (
            {"low": {"priority": 3}, "high": {"priority": 2, "gives_way": False}},
            {"scheduling_class": "low"},
            False,
        ),
    ],
)
def test_only_who_has_as_good_a_claim_makes_another_narrower_than_it_asked(
    classes: dict[str, Any], changes: dict[str, Any], gives: bool
) -> None:
    hall = a_hall(classes=classes)
    hall.run(elastic(scheduling_class="high"))
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4, **changes))
    assert bool(hall.decide().actions) is gives


def test_a_team_that_holds_more_makes_nobody_narrower() -> None:
    hall = a_hall(nodes=2, teams={"nlp": {}, "vision": {}})
    hall.run(a_job("own/train", gpus=8, project="nlp"), elastic(project="vision"))
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4, project="nlp"))
    assert hall.decide().actions == ()


def test_one_that_saves_nothing_is_left_alone() -> None:
    hall = a_hall()
    hall.run(elastic(checkpoints=False))
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4))
    assert hall.decide().actions == ()


def test_lost_while_it_is_being_resized_it_waits_for_what_it_asked_for() -> None:
    hall = a_hall()
    hall.run(elastic())
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4))
    hall.decide()
    hall.ended("r1/train", Ending.LOST)
    job = hall.job()
    assert (job.state, job.request.gpus, job.returns_to) == (JobState.WAITING, 8, None)


def test_where_its_new_place_is_gone_it_goes_on_at_what_there_is() -> None:
    hall = a_hall(nodes=2)
    hall.run(elastic(), a_job("other/train", gpus=8))
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4))
    hall.decide()
    job = hall.job()
    assert job.place is not None
    hall.read(job.place.nodes[0][0], "node_up", 0.0)
    hall.ended("other/train")
    hall.ended("r1/train", Ending.PAUSED)
    assert ("resume", "r1/train") in kinds(turn(hall))
    assert hall.job().place != job.place
    assert width(hall) == 8


def test_what_is_left_of_its_time_is_counted_at_the_width_it_has() -> None:
    hall = a_hall()
    hall.run(elastic())
    hall.wait(5 * HOUR)
    hall.submit(a_job("second/train", gpus=4))
    turn(hall)
    turn(hall)
    left = seconds_left(hall.job())
    assert left == pytest.approx(5 * HOUR * 2**0.9)


def test_explain_says_on_how_many_gpus_it_starts() -> None:
    hall = a_hall()
    hall.run(a_job("big/train", gpus=4))
    hall.submit(elastic())
    assert "starts now with 4 of 8 GPUs" in explain(hall.snapshot(), hall.policy, "r1/train").say


def test_explain_offers_fewer_gpus_where_the_policy_resizes_nobody() -> None:
    hall = a_world(a_site(nodes=1, gpus=8))
    hall.run(a_job("big/train", gpus=4))
    hall.submit(elastic())
    said = explain(hall.snapshot(), hall.policy, "r1/train")
    assert "Starts now with 4 of 8 GPUs" in said.say
    assert said.options[0].fields == {"resources.gpus": "4"}


def test_every_width_is_a_step_from_the_least() -> None:
    hall = a_hall()
    hall.run(a_job("big/train", gpus=1))
    hall.submit(elastic_request(a_job(gpus=8, checkpoints=True), 2, 8, step=2))
    turn(hall)
    assert width(hall) == 6


@pytest.mark.parametrize(("seconds", "begins"), [(2 * HOUR, False), (20 * HOUR, True)])
def test_where_asked_to_it_begins_narrower_only_if_it_ends_sooner(seconds: float, begins: bool) -> None:
    """On half its GPUs ten hours become nearly nineteen."""
    resizing = RESIZING | {"begin": "if_sooner"}
    hall = a_world(a_site(nodes=1, gpus=8), policy=a_policy(resizing=resizing))
    hall.run(a_job("big/train", gpus=4, max_duration_seconds=seconds))
    hall.submit(elastic())
    decision = hall.decide()
    assert bool(decision.actions) is begins
    said = [verdict for verdict in decision.verdicts if verdict.rule == "resizing.patience"]
    assert bool(said) is not begins
    if said:
        assert said[0].numbers["wait_seconds"] == 2 * HOUR
        assert said[0].numbers["longer_seconds"] == pytest.approx(10 * HOUR * (2**0.9 - 1))
        assert "it ends sooner if it waits" in explain(hall.snapshot(), hall.policy, "r1/train").say
        hall.ended("big/train")
        hall.decide()
        assert width(hall) == 8


def test_among_equals_nobody_is_made_narrower_for_one_who_gains_less() -> None:
    hall = a_hall(nodes=2)
    hall.run(elastic(), a_job("short/train", gpus=8, max_duration_seconds=1.2 * HOUR))
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4, max_duration_seconds=8 * HOUR))
    assert hall.decide().actions == ()


def test_one_of_a_higher_class_need_not_gain_more() -> None:
    hall = a_hall(nodes=2, classes={"urgent": {"priority": 5}})
    hall.run(elastic(), a_job("short/train", gpus=8, max_duration_seconds=1.2 * HOUR))
    hall.wait(HOUR)
    hall.submit(a_job("second/train", gpus=4, max_duration_seconds=8 * HOUR, scheduling_class="urgent"))
    assert kinds(hall.decide()) == [("pause", "r1/train")]
