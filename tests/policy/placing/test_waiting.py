"""Which end makes room: found without going through all that run, and true."""

from __future__ import annotations

import random

import pytest

from building import Hall, a_job, a_site, a_world, kinds
from wattline.policy.naming import next_action
from wattline.policy.placing import waiting
from wattline.policy.placing.placement import choose_place
from wattline.policy.placing.waiting import Ends, find_wait, find_waits
from wattline.state import Action, ActionKind, Ending, project


def a_hall_of_ends(*hours: float) -> Hall:
    """One GPU each, all of them taken until so many hours from now."""
    hall = a_world(a_site(nodes=1, gpus=len(hours)))
    hall.run(
        *(a_job(f"r{number}/train", max_duration_seconds=3600.0 * each) for number, each in enumerate(hours))
    )
    return hall


def test_as_many_end_as_are_needed_the_first_first() -> None:
    hall = a_hall_of_ends(5, 1, 4, 2, 3)
    found = find_wait(hall.snapshot(), hall.policy, a_job("n/train", gpus=3), None)
    assert found is not None
    assert (found.last, found.ends_at) == ("r4/train", hall.at + 3 * 3600)
    for job in ("r1/train", "r3/train"):
        hall.ended(job)
    hall.submit(a_job("n/train", gpus=3))
    assert kinds(hall.decide()) == []
    hall.ended("r4/train")
    assert kinds(hall.decide()) == [("start", "n/train")]


def test_where_all_ends_are_not_enough_there_is_no_wait() -> None:
    hall = a_hall_of_ends(1, 2)
    assert find_wait(hall.snapshot(), hall.policy, a_job("n/train", gpus=3), None) is None


def test_ends_that_are_kept_follow_who_comes_and_goes() -> None:
    hall = a_hall_of_ends(3, 1)
    ends = Ends.of(hall.snapshot())
    assert [job for _, job, _ in ends.upcoming(hall.snapshot())] == ["r1/train", "r0/train"]
    hall.ended("r1/train", Ending.SUCCEEDED)
    hall.run(a_job("r2/train", max_duration_seconds=7200.0))
    assert Ends.of(hall.snapshot()) is ends
    assert [job for _, job, _ in ends.upcoming(hall.snapshot())] == ["r2/train", "r0/train"]


def test_jobs_without_an_end_are_looked_at_once() -> None:
    hall = a_world(a_site(nodes=1, gpus=4))
    hall.run(a_job("r0/train"), a_job("r1/train", max_duration_seconds=3600.0), a_job("r2/train"))
    ends = Ends.of(hall.snapshot())
    assert [job for _, job, _ in ends.upcoming(hall.snapshot())] == ["r1/train"]
    hall.run(a_job("r3/train", max_duration_seconds=60.0))
    assert [job for _, job, _ in ends.upcoming(hall.snapshot())] == ["r3/train", "r1/train"]


@pytest.mark.parametrize("seed", range(4))
def test_ends_that_were_kept_are_those_that_would_be_put_in_order_anew(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever ends before time is dropped from the front; whoever comes back is entered again, once."""
    monkeypatch.setattr(waiting, "_MANY_GONE", 2)
    chance = random.Random(seed)
    hall = a_world(a_site(racks=2, nodes=2, gpus=8))
    for number in range(60):
        hall.submit(a_job(f"r{number}/train", max_duration_seconds=60.0 * chance.randrange(1, 50)))
        hall.obey(hall.decide())
        running = sorted(hall.state.holding)
        if chance.random() < 0.8 and len(running) > 4:
            ending = chance.choice((Ending.SUCCEEDED, Ending.LOST, Ending.PAUSED))
            hall.ended(chance.choice(running[: len(running) // 2]), ending)
        hall.wait(chance.uniform(0.0, 20.0))
        snapshot = hall.snapshot()
        kept = [(ends_at, job) for ends_at, job, _ in Ends.of(snapshot).upcoming(snapshot)]
        assert kept == [(ends_at, job) for ends_at, job, _ in Ends().upcoming(snapshot)], seed


def test_others_are_looked_for_until_the_first_has_its_end() -> None:
    hall = a_hall_of_ends(1, 2, 3, 4)
    asked = [a_job("n/train", gpus=gpus) for gpus in (3, 1, 2, 4)]
    plain, one, two, four = find_waits(hall.snapshot(), hall.policy, asked, None, most=3)
    ends = [wait and wait.last for wait in (plain, one, two, four)]
    assert ends == ["r2/train", "r0/train", "r1/train", None]


def test_of_others_no_more_are_looked_for_than_are_wanted() -> None:
    hall = a_hall_of_ends(1, 2, 3, 4)
    asked = [a_job("n/train", gpus=gpus) for gpus in (4, 3, 2, 1)]
    found = find_waits(hall.snapshot(), hall.policy, asked, None, most=2)
    assert [wait is not None for wait in found] == [True, False, True, True]


@pytest.mark.parametrize("seed", range(12))
def test_the_first_end_that_does_is_found_whatever_is_short(seed: int) -> None:
    """Against trying every end, one after the other, by stopping who ends and deciding."""
    chance = random.Random(seed)
    hall = a_world(
        a_site(
            racks=3,
            nodes=2,
            rack_cap_watts=chance.choice((2600.0, 4000.0, 7000.0)),
            feeds_watts=(chance.choice((6000.0, 9000.0, 20000.0)),),
        )
    )
    for number in range(24):
        seconds = 60.0 * chance.randrange(1, 500)
        watts = 100.0 * chance.randrange(1, 5)
        hall.submit(a_job(f"r{number}/train", gpus=2, peak_watts=2 * watts, max_duration_seconds=seconds))
        hall.obey(hall.decide())
    request = a_job("n/train", gpus=chance.choice((1, 3, 6, 12)))
    snapshot = hall.snapshot()
    found = find_wait(snapshot, hall.policy, request, None)
    stops: list[Action] = []
    for _, job, _ in Ends.of(snapshot).upcoming(snapshot):
        stops.append(next_action(hall.job(job), ActionKind.STOP))
        after = project(snapshot, stops)
        if choose_place(after, hall.policy, request, explain=False).place is not None:
            assert found is not None, seed
            assert found.last == job, seed
            return
    assert found is None, seed
