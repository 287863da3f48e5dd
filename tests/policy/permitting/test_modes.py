"""In which mode a phase starts, and who gives way first by what it is worth."""

from __future__ import annotations

from typing import Any

import pytest

from building import Hall, a_job, a_ladder, a_policy, a_site, a_world, kinds
from wattline.policy.giving_way.worth import Worth
from wattline.spec.pipeline import Priority
from wattline.state import Ending, JobState, Usage, dump_state, load_state


def a_two_way_job(name: str = "r1/train", **changes: Any) -> Any:
    asked = {"mode": "auto", "max_duration_seconds": 36_000.0, "approximate_seconds": 600.0}
    return a_job(name, **(asked | changes))


def mode_of(hall: Hall, job: str = "r1/train") -> str:
    hall.decide()
    return hall.job(job).mode


@pytest.mark.parametrize(("used", "mode"), [(75.0, "canonical"), (75.1, "approximate")])
def test_the_choice_turns_exactly_at_what_is_left_of_the_budget(used: float, mode: str) -> None:
    policy = a_policy(
        teams={"nlp": {"quota": {"gpu_hours": 100}, "limit": "soft"}}, modes={"budget_below": "25%"}
    )
    hall = a_world(policy=policy)
    hall.run(a_job("r0/train", max_duration_seconds=1.0))
    hall.ended("r0/train", usage=Usage(gpu_hours=used))
    hall.submit(a_two_way_job())
    assert mode_of(hall) == mode


@pytest.mark.parametrize(("usd", "mode"), [(10.41, "canonical"), (10.39, "approximate")])
def test_the_choice_turns_exactly_at_what_it_costs(usd: float, mode: str) -> None:
    """Ten hours of one GPU at 1 USD, and 4 kWh at 0.1 USD."""
    hall = a_world(policy=a_policy(modes={"cost_above": usd}))
    hall.submit(a_two_way_job())
    assert mode_of(hall) == mode


@pytest.mark.parametrize(
    ("channel", "change", "mode"),
    [
        ("production", "small", "canonical"),
        ("staging", "normal", "approximate"),
        ("staging", "large", "canonical"),
        ("", "normal", "approximate"),
    ],
)
def test_what_a_release_rests_on_goes_by_its_risk(channel: str, change: str, mode: str) -> None:
    modes = {"risk": {"staging": "20%"}, "canonical_above": "30%", "cost_above": 0}
    hall = a_world(policy=a_policy(modes=modes))
    hall.submit(a_two_way_job(channel=channel, change=change))
    assert mode_of(hall) == mode


def test_an_approximate_job_is_promised_for_as_long_as_that_takes() -> None:
    policy = a_policy(teams={"nlp": {"quota": {"gpu_hours": 1}}}, modes={"cost_above": 0})
    hall = a_world(policy=policy)
    hall.run(a_two_way_job())
    assert hall.job().promise.gpu_hours == pytest.approx(600 / 3600)
    assert hall.job().remainder.max_duration_seconds == 600.0


def test_the_mode_that_was_chosen_is_kept_to_when_it_starts_again() -> None:
    hall = a_world(policy=a_policy(modes={"cost_above": 0}))
    hall.run(a_two_way_job(checkpoints=True))
    hall.ended("r1/train", Ending.LOST)
    hall.policy = a_policy()
    hall.wait(60)
    hall.obey(hall.decide())
    assert (hall.job().state, hall.job().attempt, hall.job().mode) == (JobState.RUNNING, 2, "approximate")
    loaded = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert loaded.jobs["r1/train"].mode == "approximate"


def test_rules_see_the_mode_that_was_chosen() -> None:
    rule = {"name": "exact", "when": "job.mode == 'approximate'", "say": "not here", "mode": "block"}
    hall = a_world(policy=a_policy(modes={"cost_above": 0}, rules=[rule]))
    hall.submit(a_two_way_job())
    assert kinds(hall.decide()) == [("refuse", "r1/train")]


LADDER = a_ladder({"cap_power": "50%"})


def pressed(policy: Any, **second: Any) -> list[str]:
    """Two jobs under one rack that must give 100 W: whoever is asked."""
    hall = a_world(a_site(nodes=2, gpus=2), policy=policy)
    first = a_job("r1/train", gpus=2, ladder=LADDER, peak_watts=700.0)
    hall.run(first, a_job("r2/train", **({"gpus": 2, "ladder": LADDER} | second)))
    hall.wait(60)
    hall.read("zurich/r1", "cap_watts", 1400.0)
    return [job for kind, job in kinds(hall.decide()) if kind == "cap_power"]


@pytest.mark.parametrize(
    ("weights", "second", "asked"),
    [
        ({}, {"priority": Priority.LOW}, "r1/train"),
        ({"priority": 1}, {"priority": Priority.LOW}, "r2/train"),
        ({"priority": 1}, {"priority": Priority.HIGH}, "r1/train"),
        ({"confidence": 1}, {"confidence": 0.4}, "r2/train"),
        ({"confidence": 1}, {"confidence": 0.6}, "r1/train"),
        ({"cost": 1}, {}, "r2/train"),  # it draws more for the same work
    ],
)
def test_who_gives_way_first_is_who_is_worth_least(
    weights: dict[str, float], second: dict[str, Any], asked: str
) -> None:
    assert pressed(a_policy(throttling=weights), **second) == [asked]


def test_confidence_follows_from_how_earlier_ones_ended() -> None:
    hall = a_world(a_site(nodes=4))
    for number in range(8):
        name = f"r{number}/train"
        hall.run(a_job(name, restart_max=0))
        hall.ended(name, Ending.SUCCEEDED if number < 2 else Ending.FAILED)
    hall.run(a_job("r8/train"), a_job("r9/train", model="other"))
    worth = Worth(hall.snapshot(), a_policy(throttling={"confidence": 1}))
    assert worth.confidence(hall.job("r8/train")) == pytest.approx(0.3)
    assert worth.confidence(hall.job("r9/train")) == 0.5


def test_the_verdict_says_what_was_weighed() -> None:
    hall = a_world(a_site(nodes=2, gpus=2), policy=a_policy(throttling={"priority": 1, "cost": 1}))
    hall.run(a_job("r1/train", gpus=2, ladder=LADDER))
    hall.wait(60)
    hall.read("zurich/r1", "cap_watts", 700.0)
    (verdict,) = [one for one in hall.decide().verdicts if one.rule == "power.rack"]
    assert verdict.numbers["confidence_fraction"] == 0.5
    assert verdict.numbers["work_usd"] == pytest.approx(1.04)
    assert verdict.numbers["weighed_gpu_seconds"] > 0.0


def test_when_a_budget_is_nearly_spent_those_worth_least_are_paused_first() -> None:
    """Each of three holds two hours; a rule asks that one be left, and one that leaves is enough."""
    say = {"say": "an hour stays free", "mode": "enforce"}
    rules = [{"name": "reserve", "when": "team.gpu_hours_left < 1", **say}]
    quota = {"nlp": {"quota": {"gpu_hours": 6.5}}}
    asked = {"max_duration_seconds": 7200.0, "checkpoints": True}
    hall = a_world(policy=a_policy(teams=quota))
    hall.run(*[a_job(f"r{number}/train", confidence=0.9 - number / 10, **asked) for number in (1, 2, 3)])
    hall.policy = a_policy(
        teams=quota,
        rules=rules,
        throttling={"confidence": 1},
        thresholds={"settle": "5s", "jobs_per_response": 1},
    )
    hall.wait(10)
    paused = hall.decide()
    hall.obey(paused)
    assert kinds(paused) == [("pause", "r3/train")]
    hall.wait(10)
    assert [kind for kind, _ in kinds(hall.decide()) if kind == "pause"] == []
