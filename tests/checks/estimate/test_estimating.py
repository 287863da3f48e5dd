"""What a run will take and cost, by the runs before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from building import GPU_WATTS, Hall, a_facility, a_job, a_link, a_policy, a_site, a_world
from checks.estimate.recording import KILOWATTS, record_run
from wattline.checks.estimate import (
    Lasting,
    Record,
    estimate_run,
    gather_runs,
    left_of,
    look_back,
    price_phase,
)
from wattline.spec import Pipeline
from wattline.state import Ending, Place, Plant, Saved, Snapshot

HOUR = 3600.0


def a_pipeline(**train: Any) -> Pipeline:
    phase = {"run": "python train.py", "resources": {"gpus": 1}} | train
    head = {"pipeline": "p", "model": "tiny", "owner": "nlp", "project": "nlp"}
    return Pipeline.model_validate(head | {"phases": {"train": phase}})


def test_what_was_measured_beats_what_its_gpus_may_draw() -> None:
    hall = a_world()
    peak = {"resources": {"gpus": 1}, "constraints": {"max_duration": "1h"}}
    before = estimate_run(hall.state, hall.policy, a_pipeline(**peak), hall.at)
    assert before.estimate.energy_kwh == pytest.approx(GPU_WATTS / 1000.0)
    assert before.phases[0].energy_from == "its peak: nothing was measured yet"
    record_run(hall, "r1", HOUR)
    after = estimate_run(hall.state, hall.policy, a_pipeline(**peak), hall.at)
    assert after.estimate.energy_kwh == pytest.approx(KILOWATTS)
    assert after.phases[0].energy_from == "measured in 1 recorded run"
    assert after.estimate.peak_watts == GPU_WATTS


def test_cost_by_kind_adds_up() -> None:
    hall = a_world(a_site(usd_per_kwh=0.5))
    record_run(hall, "r1", 2 * HOUR)
    estimate = estimate_run(hall.state, hall.policy, a_pipeline(), hall.at).estimate
    cost = estimate.cost_usd
    assert estimate.gpu_hours == pytest.approx(2.0)
    assert cost.compute == pytest.approx(2.0)
    assert cost.energy == pytest.approx(0.5 * 2 * KILOWATTS)
    assert (cost.transfer, cost.storage) == (0.0, 0.0)
    assert cost.total == pytest.approx(2.0 + 0.5 * 2 * KILOWATTS)
    assert estimate.carbon_kg == pytest.approx(0.1 * 2 * KILOWATTS)


def test_parameters_that_ask_for_more_steps_cost_more() -> None:
    hall = a_world()
    for number, steps in enumerate((100, 200, 300)):
        record_run(hall, f"r{number}", 60.0 + steps, steps=steps)
    found = estimate_run(hall.state, hall.policy, a_pipeline(), hall.at, params={"steps": 600})
    assert found.lasting.p50_seconds == pytest.approx(660.0)


def test_a_run_that_failed_tells_nothing() -> None:
    hall = a_world()
    record_run(hall, "r1", 10.0, ending=Ending.STOPPED)
    found = estimate_run(hall.state, hall.policy, a_pipeline(), hall.at)
    assert found.estimate.wall_hours is None
    assert found.estimate.gpu_hours is None
    assert found.estimate.cost_usd.total is None
    assert found.estimate.not_estimated["cost_usd"] == (
        "train: no recorded runs and no constraints.max_duration"
    )


def test_what_fits_nowhere_has_no_price_and_says_so() -> None:
    hall = a_world()
    found = estimate_run(hall.state, hall.policy, a_pipeline(resources={"gpus": 1000}), hall.at)
    assert found.estimate.peak_watts is None
    assert found.estimate.not_estimated["peak_watts"] == "train: it fits nowhere in this facility"


def test_storage_without_a_price_is_not_free() -> None:
    hall = a_world()
    record_run(hall, "r1", HOUR)
    found = estimate_run(hall.state, hall.policy, a_pipeline(checkpoint={"every": "10min"}), hall.at).estimate
    assert found.cost_usd.storage is None
    assert found.not_estimated["cost_usd.storage"] == "train: the facility sets no price for storage"
    assert found.cost_usd.total == pytest.approx((found.cost_usd.compute or 0) + (found.cost_usd.energy or 0))


def copied(size_bytes: int) -> Record:
    return Record(
        phase="train",
        submitted_at=0.0,
        ended_at=HOUR,
        seconds=HOUR,
        gpus=1,
        saved=Saved(1, HOUR, "zurich", size_bytes=size_bytes, seconds=1.0),
    )


def test_copies_of_checkpoints_pay_for_the_link() -> None:
    plant = Plant(a_facility(a_site(), a_site("lulea"), links=[a_link(("zurich", "lulea"))]))
    phase = a_pipeline(checkpoint={"every": "10min", "replicate_to": ["lulea"]}).phases["train"]
    priced = price_phase(
        a_job(replicate_to=("lulea",)),
        Lasting(p50_seconds=HOUR, p90_seconds=HOUR),
        [copied(5 * 10**9)],
        plant=plant,
        place=Place("zurich", (("zurich/r1-n1", 1),)),
        phase=phase,
    )
    assert priced.cost.transfer == pytest.approx(6 * 5 * 0.02)


def test_copies_of_unknown_size_are_not_free() -> None:
    plant = Plant(a_facility(a_site(), a_site("lulea"), links=[a_link(("zurich", "lulea"))]))
    phase = a_pipeline(checkpoint={"every": "auto", "replicate_to": ["lulea"]}).phases["train"]
    priced = price_phase(
        a_job(replicate_to=("lulea",)),
        Lasting(p50_seconds=HOUR, p90_seconds=HOUR),
        [],
        plant=plant,
        place=Place("zurich", (("zurich/r1-n1", 1),)),
        phase=phase,
    )
    assert priced.cost.transfer is None
    assert "not known" in priced.not_estimated["cost_usd.transfer"]


def a_history(taken: list[float]) -> Hall:
    hall = a_world()
    for number, seconds in enumerate(taken):
        record_run(hall, f"r{number}", seconds)
    return hall


def test_looking_back_estimates_each_run_from_those_before_it() -> None:
    hall = a_history([100.0, 100.0, 200.0, 100.0])
    found = look_back(gather_runs(hall.state, "p", hall.at), hall.state.plant)
    assert [one.earlier for one in found.compared] == [1, 2, 3]
    assert [one.error for one in found.compared] == [
        pytest.approx(0.0),
        pytest.approx(0.5),
        pytest.approx(0.0),
    ]
    assert found.confidence.runs == 3
    assert found.confidence.cost_mape == pytest.approx(0.5 / 3)
    assert found.confidence.covered == pytest.approx(2 / 3)


def test_what_comes_later_changes_nothing_that_was_said_before() -> None:
    taken = [100.0, 140.0, 90.0, 400.0, 110.0, 95.0]
    short, long = (a_history(part) for part in (taken[:4], taken))
    before, after = (
        look_back(gather_runs(hall.state, "p", hall.at), hall.state.plant).compared for hall in (short, long)
    )
    assert after[: len(before)] == before


def test_runs_at_the_same_time_know_nothing_of_each_other() -> None:
    hall = a_history([100.0, 100.0])
    first, second = gather_runs(hall.state, "p", hall.at)
    beside = replace(second, submitted_at=first.submitted_at)
    assert len(look_back([first, second], hall.state.plant).compared) == 1
    found = look_back([first, beside], hall.state.plant)
    assert found.compared == ()
    assert found.say.startswith("only 0 of 3 runs")


def test_two_runs_are_too_few_to_say_how_good_estimates_are() -> None:
    hall = a_history([100.0, 100.0])
    found = estimate_run(hall.state, hall.policy, a_pipeline(), hall.at).estimate
    assert found.confidence is not None
    assert (found.confidence.runs, found.confidence.cost_mape) == (1, None)
    assert found.not_estimated["confidence"].startswith("only 1 of 3 runs")


def test_where_the_ninth_in_ten_was_passed_the_next_is_further_out() -> None:
    calm, growing = a_history([100.0] * 12), a_history([100.0 * 1.6**number for number in range(12)])
    levels = [
        look_back(gather_runs(hall.state, "p", hall.at), hall.state.plant).level for hall in (calm, growing)
    ]
    assert levels[0] < 0.9 < levels[1]


def test_what_a_team_has_left_is_what_nobody_used_or_was_promised() -> None:
    policy = a_policy(teams={"nlp": {"quota": {"gpu_hours": 100, "usd": 50}, "limit": "soft"}})
    hall = a_world(policy=policy)
    record_run(hall, "r1", 2 * HOUR, gpus=4)
    hall.run(a_job("r2/train", gpus=2, max_duration_seconds=10 * HOUR))
    left = left_of(Snapshot(hall.state, hall.at), policy, "nlp")
    assert left is not None
    assert left.gpu_hours == pytest.approx(100.0 - 8.0 - 20.0)
    assert left.gpu_hours_of == 100.0
    assert left.usd is not None
    assert left.usd < 50.0 - 28.0
    assert left.kwh is None


def test_a_team_without_a_quota_has_nothing_that_could_end() -> None:
    hall = a_world()
    assert left_of(Snapshot(hall.state, hall.at), hall.policy, "nlp") is None
    found = estimate_run(hall.state, hall.policy, a_pipeline(), hall.at).estimate
    assert found.not_estimated["quota_left"] == "the policy sets nlp no quota"


def test_checkpoints_that_are_kept_pay_for_a_month_wherever_they_lie() -> None:
    sites = [
        replace(site, storage=replace(site.storage, usd_per_gigabyte_month=price))
        for site, price in ((a_site(), 0.02), (a_site("lulea"), 0.01))
    ]
    plant = Plant(a_facility(*sites, links=[a_link(("zurich", "lulea"))]))
    phase = a_pipeline(checkpoint={"every": "10min", "replicate_to": ["lulea"], "keep": 4}).phases["train"]
    priced = price_phase(
        a_job(replicate_to=("lulea",)),
        Lasting(p50_seconds=HOUR, p90_seconds=HOUR),
        [copied(5 * 10**9)],
        plant=plant,
        place=Place("zurich", (("zurich/r1-n1", 1),)),
        phase=phase,
    )
    assert priced.cost.storage == pytest.approx(4 * 5 * (0.02 + 0.01))
    assert "cost_usd.storage" not in priced.not_estimated
