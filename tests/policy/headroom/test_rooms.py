"""A room is never smaller than what fits, and what is known of it is known anew once something changes."""

from __future__ import annotations

import random

import pytest

from building import Hall, a_device, a_job, a_ladder, a_policy, a_site, a_world, kinds
from wattline.policy.headroom.power import headroom_of
from wattline.policy.headroom.rooms import Rooms
from wattline.policy.placing.placement import choose_place
from wattline.state import Action, ActionKind, JobRequest, JobState, Place, Snapshot, project


def most_of(hall: Hall, snapshot: Snapshot, request: JobRequest) -> dict[int, int]:
    """The biggest job that may fit, by pool."""
    rooms, headroom = (
        Rooms.of(snapshot, hall.policy.thresholds),
        headroom_of(snapshot, hall.policy.thresholds),
    )
    found = {}
    for pool, biggest in enumerate(snapshot.plant.biggest_of_pool):
        room = rooms.room(snapshot, headroom, request.each_watts, pool)
        single = max((gpus for gpus in range(1, biggest + 1) if room.fits(gpus)), default=0)
        found[pool] = max(single, room.spread())
    return found


@pytest.mark.parametrize("seed", range(8))
def test_wherever_a_place_is_found_the_room_said_so(seed: int) -> None:
    """Over states in which jobs come and go, with caps that bind now at racks, now at feeds or loops."""
    chance = random.Random(seed)
    hall = a_world(
        a_site("zurich", racks=3, nodes=2, rack_cap_watts=chance.choice((2000.0, 3500.0, 9000.0))),
        a_site("oslo", racks=2, nodes=2, feeds_watts=[chance.choice((4000.0, 9000.0))]),
    )
    found = 0
    for number in range(60):
        request = a_job(
            f"r{number}/train",
            gpus=chance.choice((1, 1, 2, 4, 8, 12)),
            peak_watts=chance.choice((None, None, 900.0)),
        )
        snapshot = hall.snapshot()
        choice = choose_place(snapshot, hall.policy, request)
        if choice.place is not None:
            found += 1
            pool = snapshot.plant.spots[snapshot.plant.node_number[choice.place.nodes[0][0]]].pool
            assert most_of(hall, snapshot, request)[pool] >= request.gpus
        hall.submit(request)
        hall.obey(hall.decide())
        if chance.random() < 0.5 and hall.state.holding:
            hall.ended(chance.choice(sorted(hall.state.holding)))
        hall.wait(chance.uniform(0.0, 20.0))
    assert found > 10


@pytest.mark.parametrize("seed", range(4))
def test_a_room_that_was_kept_is_the_one_that_would_be_worked_out_anew(seed: int) -> None:
    chance = random.Random(seed)
    hall = a_world(a_site(racks=4, nodes=2, rack_cap_watts=3000.0))
    one = a_job("any/train")
    for number in range(40):
        hall.submit(a_job(f"r{number}/train", gpus=chance.choice((1, 2, 4))))
        hall.obey(hall.decide())
        if chance.random() < 0.6 and hall.state.holding:
            hall.ended(chance.choice(sorted(hall.state.holding)))
        kept = most_of(hall, hall.snapshot(), one)
        hall.state.derived.clear()
        assert most_of(hall, hall.snapshot(), one) == kept


@pytest.mark.parametrize("seed", range(6))
def test_a_room_reaches_whatever_it_spreads_over_in_whichever_order_it_is_asked(seed: int) -> None:
    chance = random.Random(seed)
    hall = a_world(a_site(racks=6, nodes=2, loops=3, rack_cap_watts=3000.0, loop_watts=5500.0))
    for number in range(12):
        hall.submit(a_job(f"r{number}/train", gpus=chance.choice((1, 2, 4))))
        hall.obey(hall.decide())
        request = a_job("any/train", peak_watts=chance.choice((100.0, 250.0, 400.0)))
        snapshot = hall.snapshot()
        rooms, headroom = (
            Rooms.of(snapshot, hall.policy.thresholds),
            headroom_of(snapshot, hall.policy.thresholds),
        )
        room = rooms.room(snapshot, headroom, request.each_watts, 0)
        asked = chance.sample(range(1, 80), 20)
        reached = [room.reaches(gpus) for gpus in asked]
        hall.state.derived.clear()
        fresh = Rooms.of(snapshot, hall.policy.thresholds).room(snapshot, headroom, request.each_watts, 0)
        assert reached == [fresh.spread() >= gpus for gpus in asked], seed


def test_what_is_laid_over_a_snapshot_takes_of_its_room_and_of_no_other() -> None:
    hall = a_world(a_site(racks=1, nodes=1, gpus=4))
    hall.submit(a_job("r1/train", gpus=3))
    before = hall.snapshot()
    start = Action(
        id="a",
        kind=ActionKind.START,
        job="r1/train",
        attempt=1,
        place=Place("zurich", (("zurich/r1-n1", 3),)),
    )
    after = project(before, [start])
    assert [most_of(hall, each, a_job())[0] for each in (before, after, before)] == [4, 1, 4]


def test_a_team_that_may_use_one_model_only_does_not_keep_others_from_theirs() -> None:
    policy = a_policy(teams={"vision": {"gpu": ["H100"]}})
    hall = a_world(
        a_site("zurich", nodes=1, gpus=2),
        a_site("oslo", nodes=1, gpus=2, device=a_device("H100")),
        policy=policy,
    )
    hall.run(a_job("r0/train", gpus=2, project="vision"))
    hall.submit(a_job("r1/train", project="vision"), a_job("r2/train"))
    assert kinds(hall.decide()) == [("start", "r2/train")]


def draw(hall: Hall, watts: float) -> None:
    """All meters of the hall."""
    for subject, quantity in (("r1", "rack_watts"), ("feed-a", "supply_watts"), ("loop", "loop_heat_watts")):
        hall.read(f"zurich/{subject}", quantity, watts)


def a_paused_job_that_may_return() -> Hall:
    """Its rack was over its cap and no longer is; it returns after two minutes. Another job waits."""
    policy = a_policy(thresholds={"clear_for": "120s"})
    site = a_site(nodes=1, gpus=1, rack_cap_watts=5000.0, telemetry="emulated")
    hall = a_world(site, policy=policy)
    draw(hall, 100.0)
    hall.run(a_job("r1/train", checkpoints=True, ladder=a_ladder({"pause": "1h"})))
    hall.wait(5)
    draw(hall, 6000.0)
    hall.obey(hall.decide())
    assert hall.job("r1/train").state is JobState.PAUSED
    hall.submit(a_job("r2/train"))
    assert kinds(hall.decide()) == []
    hall.wait(5)
    draw(hall, 100.0)
    assert kinds(hall.decide()) == []
    return hall


def test_the_place_of_a_paused_job_is_kept_until_it_returns() -> None:
    hall = a_paused_job_that_may_return()
    hall.wait(121)
    draw(hall, 100.0)
    assert kinds(hall.decide()) == [("resume", "r1/train")]


def test_a_place_that_was_kept_for_a_job_that_is_cancelled_goes_to_who_waits() -> None:
    hall = a_paused_job_that_may_return()
    hall.asked("r1/train", "cancel")
    assert kinds(hall.decide()) == [("start", "r2/train")]
