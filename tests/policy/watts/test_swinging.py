"""Work in step on feeds that mind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from building import Hall, a_facility, a_job, a_policy, a_site, a_world, kinds
from wattline.facility import Site
from wattline.state import Forgotten, JobRequest, Snapshot, State, dump_state, load_state


def a_touchy_site(swing_watts: float, name: str = "zurich", **changes: Any) -> Site:
    site = a_site(name, nodes=8, **changes)
    return replace(site, supplies=tuple(replace(one, swing_watts=swing_watts) for one in site.supplies))


def swinging(name: str, gpus: int = 8, **changes: Any) -> JobRequest:
    """Each GPU falls from 400 W to 100 W: eight of them swing by 2.4 kW."""
    return a_job(name, gpus=gpus, communicating_watts=100.0, **changes)


def started(hall: Hall) -> list[str]:
    decision = hall.decide()
    hall.obey(decision)
    return [job for kind, job in kinds(decision) if kind == "start"]


@pytest.mark.parametrize(("swing_watts", "fits"), [(2400.0, True), (2399.0, False)])
def test_one_job_swings_by_all_of_its_gpus_at_once(swing_watts: float, fits: bool) -> None:
    hall = a_world(a_touchy_site(swing_watts))
    hall.submit(swinging("r1/train"))
    decision = hall.decide()
    assert kinds(decision) == [("start" if fits else "refuse", "r1/train")]


def test_what_would_swing_too_much_together_waits_until_another_has_ended() -> None:
    hall = a_world(a_touchy_site(5000.0))
    hall.submit(swinging("r1/train"), swinging("r2/train"), swinging("r3/train"), a_job("r4/train", gpus=8))
    decision = hall.decide()
    hall.obey(decision)
    assert [job for _, job in kinds(decision)] == ["r1/train", "r2/train", "r4/train"]
    (verdict,) = [one for one in decision.verdicts if one.rule == "swing.supply"]
    assert verdict.subject == "zurich/feed-a"
    assert verdict.numbers == pytest.approx(
        {"short_by_watts": 2200.0, "asked_watts": 2400.0, "joint_watts": 7200.0, "limit_watts": 5000.0}
    )
    assert "a floor of 375 W for each GPU while it communicates, for up to 2.2 kW more" in verdict.change
    assert started(hall) == []
    hall.ended("r1/train")
    assert started(hall) == ["r3/train"]


def test_a_floor_lets_it_in_at_the_price_of_its_watts() -> None:
    hall = a_world(a_touchy_site(5000.0))
    hall.run(swinging("r1/train"), swinging("r2/train"))
    hall.submit(a_job("r3/train", gpus=8, communicating_watts=375.0))
    assert started(hall) == ["r3/train"]


def test_it_goes_to_another_site_before_it_waits() -> None:
    hall = a_world(a_touchy_site(2400.0), a_site("oslo", usd_per_kwh=0.5))
    hall.submit(swinging("r1/train"), swinging("r2/train"))
    places = [action.place.site for action in hall.decide().actions if action.place]
    assert places == ["zurich", "oslo"]


def test_swings_quicker_than_a_feed_follows_do_not_count() -> None:
    hall = a_world(a_touchy_site(100.0))
    hall.submit(swinging("r1/train", step_seconds=0.09))
    assert started(hall) == ["r1/train"]


def test_what_was_measured_counts_and_not_what_was_declared() -> None:
    hall = a_world(a_touchy_site(2400.0))
    hall.run(swinging("r1/train"))
    hall.submit(swinging("r2/train", gpus=1))
    assert started(hall) == []
    hall.wait(1)
    hall.read("r1/train", "swing_watts", 1000.0)
    assert started(hall) == ["r2/train"]


def test_a_loaded_state_knows_what_swings() -> None:
    hall = a_world(a_touchy_site(2400.0))
    hall.run(swinging("r1/train"))
    hall.read("r1/train", "swing_watts", 1000.0)
    copy: State = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert Snapshot(copy, hall.at).reading("r1/train", "swing_watts") == 1000.0


def test_how_swings_add_up_is_the_policys_to_say() -> None:
    nine = [swinging(f"r{number}/train", gpus=1) for number in range(9)]  # 300 W each
    for factor, most in ((2.0, 9), (3.0, 6)):
        hall = Hall(a_facility(a_touchy_site(1800.0)), a_policy(thresholds={"swing_factor": factor}), 0.0)
        hall.submit(*nine)
        assert len(started(hall)) == most


def test_what_was_measured_of_a_job_is_forgotten_with_it() -> None:
    hall = a_world(a_touchy_site(2400.0))
    hall.run(swinging("r1/train"))
    hall.read("r1/train", "swing_watts", 1000.0)
    hall.ended("r1/train")
    hall.fold(Forgotten(at=hall.at, runs=("r1",)))
    assert hall.snapshot().reading("r1/train", "swing_watts") is None
