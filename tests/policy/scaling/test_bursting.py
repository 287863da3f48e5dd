"""Who goes to a cloud, when, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from building import Hall, a_cloud, a_job, a_link, a_policy, a_site, a_world, kinds
from wattline.policy import explain
from wattline.policy.placing.cloud import offers
from wattline.spec.policy import Policy
from wattline.state import ActionKind, Decision, JobState, Measured, dump_state

HOUR = 3600.0
LINK = a_link(("zurich", "cloud"), usd_per_gigabyte=0.0)


def a_hall(*, policy: Policy | None = None, **cloud: Any) -> Hall:
    """One hall of 8 GPUs at 1 USD an hour and its power, and a region with twice as many at 3 USD."""
    return a_world(a_site(nodes=1), a_cloud(**cloud), links=[LINK], policy=policy)


def a_burst(name: str = "late/train", **changes: Any) -> Any:
    asked = {"gpus": 8, "burst": True, "checkpoints": True, "max_duration_seconds": HOUR}
    return a_job(name, **(asked | changes))


def sites(decision: Decision) -> dict[str, str]:
    return {action.job: action.place.site for action in decision.actions if action.place is not None}


def filled(**cloud: Any) -> Hall:
    """The hall is taken for ten hours."""
    hall = a_hall(**cloud)
    hall.run(a_job("long/train", gpus=8, max_duration_seconds=10 * HOUR))
    return hall


def test_our_own_hall_comes_first_where_it_costs_less() -> None:
    hall = a_hall()
    hall.submit(a_burst())
    assert sites(hall.decide()) == {"late/train": "zurich"}


def test_a_job_goes_to_a_cloud_that_costs_less_than_our_own() -> None:
    hall = a_hall(usd_per_gpu_hour=0.5)
    hall.submit(a_burst())
    decision = hall.decide()
    assert sites(decision) == {"late/train": "cloud"}
    (price,) = [verdict for verdict in decision.verdicts if verdict.rule == "cloud.price"]
    assert price.say == "costs less than our own"
    assert price.numbers["comes_to_usd"] == pytest.approx(8 * 0.5)


def test_what_a_cloud_says_it_costs_now_is_what_counts() -> None:
    hall = a_hall(usd_per_gpu_hour=3.0)
    hall.fold(Measured(at=hall.at, readings=(("cloud", "usd_per_gpu_hour", 0.4),)))
    hall.submit(a_burst())
    assert sites(hall.decide()) == {"late/train": "cloud"}


def test_egress_and_reclaims_may_make_a_cheap_cloud_dear() -> None:
    dear: tuple[dict[str, Any], ...] = (
        {"usd_per_gigabyte_out": 5.0},
        {"reclaims_per_gpu_hour": 2.0, "notice_seconds": 0.0},
    )
    for terms in dear:
        hall = a_hall(usd_per_gpu_hour=0.9, **terms)
        hall.submit(a_burst(saves_every_seconds=HOUR))
        assert sites(hall.decide()) == {"late/train": "zurich"}, terms


def test_a_job_that_did_not_say_burst_never_leaves() -> None:
    hall = filled(usd_per_gpu_hour=0.1)
    hall.submit(a_burst(burst=False, deadline_at=hall.at + HOUR))
    assert kinds(hall.decide()) == []


def test_a_policy_may_let_all_jobs_burst_or_none() -> None:
    for jobs, expected in (("all", {"late/train": "cloud"}), ("none", {})):
        hall = filled(usd_per_gpu_hour=0.1, policy=a_policy(bursting={"jobs": jobs}))
        hall.submit(a_burst(burst=jobs == "none"))
        assert sites(hall.decide()) == expected


def test_a_job_waits_for_its_own_hall_until_it_would_be_too_late() -> None:
    hall = filled(policy=a_policy(bursting={"margin": "10min"}))
    hall.submit(a_burst(deadline_at=hall.at + 3 * HOUR))
    decision = hall.decide()
    assert sites(decision) == {}
    assert decision.revisit_at == hall.at + 3 * HOUR - HOUR - 600.0
    hall.at = decision.revisit_at
    assert sites(hall.decide()) == {"late/train": "cloud"}


def test_a_job_that_finds_room_of_our_own_in_its_last_minute_stays() -> None:
    hall = filled()
    hall.submit(a_burst(deadline_at=hall.at + 2 * HOUR))
    hall.decide()
    hall.wait(1.5 * HOUR)
    hall.ended("long/train")
    assert sites(hall.decide()) == {"late/train": "zurich"}


def test_a_deadline_that_has_passed_is_worth_no_rent() -> None:
    hall = filled()
    hall.submit(a_burst(deadline_at=hall.at - 1.0))
    assert sites(hall.decide()) == {}


def test_who_would_be_late_first_gets_the_last_machine() -> None:
    hall = filled(machines=1)
    hall.submit(a_burst("a/train", deadline_at=hall.at + 1.1 * HOUR))
    hall.submit(a_burst("b/train", deadline_at=hall.at + 1.05 * HOUR))
    assert sites(hall.decide()) == {"b/train": "cloud"}


def test_a_job_that_no_hall_of_ours_could_take_goes_at_once_and_is_not_refused() -> None:
    hall = a_hall(machines=2)
    hall.submit(a_burst(gpus=16))
    assert sites(hall.decide()) == {"late/train": "cloud"}
    hall.submit(a_burst("more/train", gpus=16))
    assert kinds(hall.decide()) == []
    assert hall.job("more/train").state is JobState.WAITING
    hall.submit(a_burst("stays/train", gpus=16, burst=False))
    assert kinds(hall.decide()) == [("refuse", "stays/train")]


def test_a_region_and_a_model_that_a_job_may_not_use_are_not_offered() -> None:
    hall = filled(region="us")
    hall.submit(a_burst(residency=("eu",), deadline_at=hall.at + HOUR))
    assert sites(hall.decide()) == {}
    assert offers(hall.snapshot(), hall.policy, a_burst(gpu_models=("H100",))) == []


def test_a_budget_bounds_what_is_rented() -> None:
    policy = a_policy(teams={"nlp": {"quota": {"usd": 30}}})
    hall = a_hall(policy=policy)
    hall.run(a_job("long/train", gpus=8, max_duration_seconds=HOUR))  # 8 GPU-hours and 3.2 kWh: 8.32 USD
    hall.submit(a_burst("dear/train", deadline_at=hall.at + HOUR))  # 24 USD
    assert sites(hall.decide()) == {}
    hall.fold(Measured(at=hall.at + 1, readings=(("cloud", "usd_per_gpu_hour", 2.5),)))  # 20 USD
    assert sites(hall.decide()) == {"dear/train": "cloud"}
    assert hall.job("dear/train").promise.usd == pytest.approx(20.0)


def test_what_is_promised_counts_the_price_of_now_and_what_comes_back() -> None:
    hall = filled(usd_per_gigabyte_out=0.1)
    hall.submit(a_burst(deadline_at=hall.at + HOUR, brings_back_bytes=50e9))
    hall.decide()
    assert hall.job("late/train").promise.usd == pytest.approx(8 * 3.0 + 5.0)


def test_the_verdicts_name_price_reclaims_and_egress() -> None:
    hall = filled(usd_per_gigabyte_out=0.1, reclaims_per_gpu_hour=0.005, notice_seconds=120.0)
    hall.submit(a_burst(deadline_at=hall.at + HOUR, brings_back_bytes=3e9))
    decision = hall.decide()
    told = {verdict.rule: verdict.numbers for verdict in decision.verdicts if verdict.job == "late/train"}
    assert {"cloud.price", "cloud.reclaim", "cloud.egress"} <= told.keys()
    assert not any(rule.startswith(("power.", "cooling.", "heat.")) for rule in told)
    assert told["cloud.reclaim"]["within_an_hour_fraction"] == pytest.approx(0.0392, abs=1e-4)
    assert told["cloud.egress"] == {"comes_back_bytes": 3e9, "comes_to_usd": pytest.approx(0.3)}


def test_an_option_names_its_numbers_and_taking_it_makes_it_so() -> None:
    hall = filled(usd_per_gigabyte_out=0.1, reclaims_per_gpu_hour=0.005, notice_seconds=120.0)
    hall.submit(a_burst(burst=False, brings_back_bytes=3e9))
    hall.decide()
    (option,) = [
        each for each in explain(hall.snapshot(), hall.policy, "late/train").options if "cloud" in each.change
    ]
    said = "let it burst to cloud (spot 3.00 USD/GPU-h, reclaim 3.9 %/h, egress 3 GB)"
    assert (option.change, option.starts_at) == (said, hall.at)
    assert option.cost_delta_usd is not None
    rework = 0.04 * (40.0 / HOUR) * 8 * 3.0
    assert option.cost_delta_usd == pytest.approx(24.0 + 0.3 + rework - 8.32, abs=1e-6)
    hall.asked("late/train", "burst")
    assert sites(hall.decide()) == {"late/train": "cloud"}


def test_no_option_is_offered_where_no_machine_is_free() -> None:
    hall = filled(machines=1)
    hall.submit(a_burst("a/train", deadline_at=hall.at + HOUR))
    hall.decide()
    hall.submit(a_burst("b/train", deadline_at=hall.at + HOUR))
    hall.decide()
    changes = [option.change for option in explain(hall.snapshot(), hall.policy, "b/train").options]
    assert not any("cloud" in change for change in changes)


def test_an_explanation_says_that_a_job_is_about_to_go() -> None:
    hall = filled()
    hall.submit(a_burst(deadline_at=hall.at + HOUR))
    assert "cloud/" in explain(hall.snapshot(), hall.policy, "late/train").say


def test_a_job_is_put_into_a_cloud_or_a_hall_and_never_into_both() -> None:
    hall = a_hall(usd_per_gpu_hour=0.5)
    for number in range(5):
        hall.submit(a_burst(f"r{number}/train"))
    decision = hall.decide()
    assert len({action.job for action in decision.actions}) == len(decision.actions) == 3
    assert sorted(sites(decision).values()) == ["cloud", "cloud", "zurich"]


def test_a_paused_job_whose_owner_lets_go_may_come_back_to_its_cloud() -> None:
    hall = filled()
    hall.submit(a_burst(deadline_at=hall.at + HOUR))
    hall.obey(hall.decide())
    hall.asked("late/train", "pause")
    hall.obey(hall.decide())
    hall.asked("late/train", "resume")
    decision = hall.decide()
    assert [(action.kind, action.place.site) for action in decision.actions if action.place] == [
        (ActionKind.RESUME, "cloud")
    ]


def test_the_same_facility_without_its_cloud_is_judged_and_kept_the_same() -> None:
    """Nobody pays for what is not there: a hall without a cloud has no trace of one in what is kept."""
    hall = a_world(a_site(nodes=1))
    hall.submit(a_burst(deadline_at=hall.at + HOUR), a_burst("two/train"))
    assert sites(hall.decide()) == {"late/train": "zurich"}
    assert b"cloud" not in dump_state(hall.state)


def test_who_is_too_late_by_now_takes_no_machine_from_others() -> None:
    hall = filled(machines=1)
    hall.submit(a_burst("first/train", deadline_at=hall.at + HOUR))
    hall.decide()
    hall.submit(a_burst("missed/train", deadline_at=hall.at + 1.5 * HOUR))
    hall.decide()
    hall.wait(HOUR)  # the machine was taken; half an hour is left for an hour's work
    hall.submit(a_burst("late/train", deadline_at=hall.at + HOUR))
    hall.ended("first/train")
    assert sites(hall.decide()) == {"late/train": "cloud"}


def test_a_job_whose_longest_never_fitted_its_deadline_goes_at_once() -> None:
    hall = filled()
    hall.submit(a_burst(max_duration_seconds=5 * HOUR, deadline_at=hall.at + HOUR))
    assert sites(hall.decide()) == {"late/train": "cloud"}


def test_a_region_that_a_team_can_pay_is_found_behind_one_that_it_cannot() -> None:
    """What is cheapest by the weights may cost more money: budgets are asked of each region."""
    policy = a_policy(teams={"nlp": {"quota": {"usd": 40}}}, weights={"cost": 0, "carbon": 1})
    clean = a_cloud("clean", usd_per_gpu_hour=9.0)
    links = [LINK, a_link(("zurich", "clean"), usd_per_gigabyte=0.0)]
    hall = a_world(a_site(nodes=1, gpus=4), clean, a_cloud(), links=links, policy=policy)
    hall.submit(a_burst())
    assert sites(hall.decide()) == {"late/train": "cloud"}
