"""Why a job waits: one reason, and changes that were tried and work."""

from __future__ import annotations

import re

import pytest

from building import MONDAY, Hall, a_device, a_job, a_ladder, a_link, a_policy, a_site, a_world, kinds
from wattline.policy import Explanation, explain
from wattline.state import Ending, Expected, Forecasted, JobRequest, JobState


def explained(hall: Hall, request: JobRequest) -> Explanation:
    hall.submit(request)
    return explain(hall.snapshot(), hall.policy, request.job)


def a_tight_hall() -> Hall:
    """A rack of 4 kW with 2.4 kW promised until an hour from now."""
    hall = a_world(a_site(nodes=2, rack_cap_watts=4000.0))
    hall.run(a_job("r0/train", gpus=6, max_duration_seconds=3600.0))
    return hall


def test_one_reason_dominates_and_carries_its_shortfall() -> None:
    found = explained(a_tight_hall(), a_job(gpus=8))
    assert found.state is JobState.WAITING
    assert found.blocked_by is not None
    assert (found.blocked_by.rule, found.blocked_by.subject) == ("power.rack", "zurich/r1")
    assert (found.blocked_by.short_by, found.blocked_by.unit) == (1600.0, "watts")
    assert found.say.startswith(
        "r1/train waits for rack zurich/r1: 1.6 kW short. Starts now if capped to 50 %"
    )


def test_the_larger_shortfall_is_named_and_a_refusal_before_any_wait() -> None:
    hall = a_world(a_site(nodes=2, rack_cap_watts=4000.0, feeds_watts=(3000.0,)))
    hall.run(a_job("r0/train", gpus=6, max_duration_seconds=3600.0))
    found = explained(hall, a_job(gpus=7))
    assert found.blocked_by is not None
    assert found.blocked_by.rule == "power.supply"
    refused = explained(hall, a_job("r2/train", gpus=99))
    assert "is refused by gpus" in refused.say


def test_nobody_has_estimated_when_it_starts_and_that_is_said() -> None:
    found = explained(a_tight_hall(), a_job(gpus=8))
    assert found.eta is None
    assert found.not_estimated == ("eta",)


def forecast(hall: Hall, job: str, p50: float | None, p90: float | None) -> None:
    """Of half a minute ago."""
    at = hall.at - 30.0
    starts = (Expected(job, p50, p90),)
    hall.fold(Forecasted(at=at, starts=starts, samples=16, horizon_seconds=3600.0))


def test_a_forecast_says_when_it_starts_and_how_old_it_is() -> None:
    hall = a_tight_hall()
    hall.submit(a_job(gpus=8))
    forecast(hall, "r1/train", hall.at + 60, hall.at + 600)
    found = explain(hall.snapshot(), hall.policy, "r1/train")
    assert found.eta is not None
    assert (found.eta.p50, found.eta.p90) == (hall.at + 60, hall.at + 600)
    assert (found.eta.age_seconds, found.eta.samples) == (30.0, 16)
    assert found.not_estimated == ()


def test_what_a_forecast_could_not_tell_is_named() -> None:
    hall = a_tight_hall()
    hall.submit(a_job(gpus=8))
    forecast(hall, "r1/train", hall.at + 60, None)
    assert explain(hall.snapshot(), hall.policy, "r1/train").not_estimated == ("eta.p90",)


def test_a_blocked_job_has_an_eta_and_one_that_runs_or_was_asked_to_stay_needs_none() -> None:
    hall = a_world()
    hall.submit(a_job("r1/train"), a_job("r1/eval", after=("r1/train",)))
    assert explain(hall.snapshot(), hall.policy, "r1/eval").not_estimated == ("eta",)
    forecast(hall, "r1/eval", hall.at + 60, hall.at + 600)
    assert explain(hall.snapshot(), hall.policy, "r1/eval").eta is not None
    hall.asked("r1/eval", "pause")
    hall.obey(hall.decide())
    for job in ("r1/train", "r1/eval"):
        found = explain(hall.snapshot(), hall.policy, job)
        assert (found.eta, found.not_estimated) == (None, ())


def test_an_offered_cap_really_starts_the_job() -> None:
    hall = a_tight_hall()
    found = explained(hall, a_job(gpus=8))
    cap = next(option for option in found.options if option.change.startswith("cap its power"))
    assert cap.starts_at == hall.at
    share = float(re.findall(r"at (\d+)%", cap.change.replace(" %", "%"))[0]) / 100
    assert share == 0.5
    hall.submit(a_job("r2/train", gpus=8, peak_watts=8 * 400 * share))
    assert ("start", "r2/train") in kinds(hall.decide())


def test_the_next_looser_cap_would_not_have_started_it() -> None:
    hall = a_tight_hall()
    hall.submit(a_job(gpus=8, peak_watts=8 * 400 * 0.6))
    assert kinds(hall.decide()) == []


def test_an_offered_wait_really_starts_the_job() -> None:
    hall = a_tight_hall()
    found = explained(hall, a_job(gpus=8))
    wait = next(
        option for option in found.options if option.change == "wait until r0/train has ended, at the latest"
    )
    assert wait.starts_at == MONDAY + 3600
    assert kinds(hall.decide()) == []
    hall.at = wait.starts_at
    hall.ended("r0/train", Ending.TIMED_OUT)
    assert kinds(hall.decide()) == [("start", "r1/train")]


def test_a_wait_is_offered_on_a_metered_hall_too() -> None:
    hall = a_world(a_site(nodes=1, rack_cap_watts=4000.0, telemetry="emulated"))
    hall.read("zurich/r1", "rack_watts", 0.0)
    hall.read("zurich/feed-a", "supply_watts", 0.0)
    hall.read("zurich/loop", "loop_heat_watts", 0.0)
    hall.run(a_job("r0/train", gpus=6, max_duration_seconds=3600.0))
    hall.wait(1)
    hall.read("zurich/r1", "rack_watts", 2400.0)
    found = explained(hall, a_job(gpus=8))
    assert found.options[-1].change == "wait until r0/train has ended, at the latest"


def test_fewer_gpus_are_offered_and_asking_for_them_starts_it() -> None:
    hall = a_world(a_site(nodes=1, gpus=8))
    hall.run(a_job("r0/train", gpus=5, max_duration_seconds=3600.0))
    found = explained(hall, a_job("n/train", gpus=8))
    (offered,) = [option for option in found.options if option.is_for_fewer_gpus]
    assert offered.change == "ask for 2 GPUs"
    hall.submit(a_job("m/train", gpus=int(str(offered.fields["resources.gpus"]))))
    assert ("start", "m/train") in kinds(hall.decide())


def test_fewer_gpus_that_would_start_sooner_are_offered_and_do_start_then() -> None:
    hall = a_world(a_site(nodes=1, gpus=8))
    hall.run(*(a_job(f"r{n}/train", gpus=4, max_duration_seconds=3600.0 * n) for n in (1, 2)))
    found = explained(hall, a_job("n/train", gpus=8))
    fewer, wait = found.options
    assert fewer.change == "ask for 4 GPUs, and wait until r1/train has ended, at the latest"
    assert wait.change == "wait until r2/train has ended, at the latest"
    assert MONDAY + 3600 == fewer.starts_at < wait.starts_at
    assert found.remedy == ""  # neither starts it now
    hall.submit(a_job("m/train", gpus=4))
    assert kinds(hall.decide()) == []
    hall.at = fewer.starts_at
    hall.ended("r1/train", Ending.TIMED_OUT)
    assert ("start", "m/train") in kinds(hall.decide())


def test_nothing_is_offered_for_sooner_that_is_not_sooner() -> None:
    hall = a_world(a_site(nodes=1, gpus=8))
    hall.run(a_job("r1/train", gpus=8, max_duration_seconds=3600.0))
    found = explained(hall, a_job("n/train", gpus=8))
    assert [option.change for option in found.options] == ["wait until r1/train has ended, at the latest"]


def test_at_most_three_are_offered_with_those_that_start_sooner() -> None:
    other = a_device("H100")
    hall = a_world(a_site("zurich", nodes=1), a_site("oslo", nodes=1, region="no", device=other))
    hall.run(
        *(a_job(f"a{n}/train", gpus=4, gpu_models=("A100",), max_duration_seconds=3600.0 * n) for n in (3, 4))
    )
    hall.run(
        *(a_job(f"h{n}/train", gpus=4, gpu_models=("H100",), max_duration_seconds=3600.0 * n) for n in (1, 2))
    )
    found = explained(hall, a_job("n/train", gpus=8, gpu_models=("A100",)))
    assert [option.change for option in found.options] == [
        "ask for 4 GPUs, and wait until a3/train has ended, at the latest",
        "also accept H100, at oslo, and wait until h2/train has ended, at the latest",
        "wait until a4/train has ended, at the latest",
    ]
    starts = [option.starts_at for option in found.options]
    assert max(starts) == starts[-1]


def test_another_gpu_is_offered_where_one_is_free() -> None:
    other = a_device("H100", usd_per_hour=3.0)
    hall = a_world(a_site("zurich", nodes=1), a_site("oslo", nodes=1, device=other))
    hall.run(a_job("r0/train", gpus=8, gpu_models=("A100",)))
    found = explained(hall, a_job(gpus=8, gpu_models=("A100",), max_duration_seconds=3600.0))
    (option,) = found.options
    assert option.change == "also accept H100, at oslo"
    assert option.cost_delta_usd == pytest.approx(16.0)
    hall.submit(a_job("r2/train", gpus=8, gpu_models=("A100", "H100")))
    assert kinds(hall.decide()) == [("start", "r2/train")]


def test_another_region_is_offered_where_there_is_room_and_priced() -> None:
    hall = a_world(a_site("zurich", nodes=1), a_site("ashburn", nodes=1, region="us", usd_per_kwh=0.3))
    hall.run(a_job("r0/train", gpus=8, residency=("eu",)))
    found = explained(hall, a_job(gpus=8, residency=("eu",), max_duration_seconds=3600.0))
    (option,) = found.options
    assert option.change == "let its data go to us, at ashburn"
    assert option.cost_delta_usd is not None
    assert option.cost_delta_usd > 0
    hall.submit(a_job("r2/train", gpus=8))
    assert kinds(hall.decide()) == [("start", "r2/train")]


def test_a_job_paused_at_a_site_is_offered_another() -> None:
    hall = a_world(
        a_site("zurich", nodes=1),
        a_site("oslo", nodes=1, usd_per_kwh=9.0),
        links=(a_link(("zurich", "oslo")),),
    )
    ladder = a_ladder({"pause": "1h"})
    hall.run(a_job(gpus=8, checkpoints=True, ladder=ladder))
    hall.read("zurich/r1", "cap_watts", 100.0)
    hall.obey(hall.decide())
    found = explain(hall.snapshot(), hall.policy, "r1/train")
    assert found.state == "paused"
    assert "move it to oslo" in [option.change for option in found.options]


def test_nothing_is_offered_that_would_not_help() -> None:
    rules = [{"name": "never", "when": "job.gpus > 0", "say": "no GPUs on Sundays", "mode": "block"}]
    found = explained(a_world(policy=a_policy(rules=rules)), a_job())
    assert found.options == ()
    assert found.blocked_by is not None
    assert found.blocked_by.rule == "rule.never"


def test_a_job_that_fits_says_where() -> None:
    found = explained(a_world(), a_job())
    assert found.blocked_by is None
    assert found.say == "fits now at zurich/r1-n1×1"


def test_blocked_paused_and_ended_jobs_explain_themselves() -> None:
    hall = a_world()
    hall.submit(a_job("r1/train", checkpoints=True), a_job("r1/eval", after=("r1/train",)))
    assert explain(hall.snapshot(), hall.policy, "r1/eval").say == "comes after r1/train"
    hall.obey(hall.decide())
    hall.asked("r1/train", "pause")
    hall.obey(hall.decide())
    assert explain(hall.snapshot(), hall.policy, "r1/train").say == "paused: asked to pause"
    hall.asked("r1/train", "cancel")
    assert explain(hall.snapshot(), hall.policy, "r1/train").say == "cancelled by ada"


def test_a_running_job_under_pressure_says_what_presses() -> None:
    hall = a_world(a_site(telemetry="emulated"))
    hall.read("zurich/r1", "rack_watts", 0.0)
    hall.read("zurich/feed-a", "supply_watts", 0.0)
    hall.read("zurich/loop", "loop_heat_watts", 0.0)
    hall.run(a_job(ladder=a_ladder({"cap_power": "50%"})))
    hall.wait(1)
    hall.read("zurich/r1", "rack_watts", 2e6)
    found = explain(hall.snapshot(), hall.policy, "r1/train")
    assert found.blocked_by is not None
    assert (found.blocked_by.rule, found.blocked_by.short_by) == ("power.rack", 1e6)
