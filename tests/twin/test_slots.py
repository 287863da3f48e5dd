"""Whose turn is when, where all say how long they take."""

from __future__ import annotations

import pytest

from building import Hall, a_job, a_policy, a_site, a_world
from wattline.twin.lately import Lately
from wattline.twin.slots import Slots, all_say

HOUR = 3600.0
DAY = 24 * HOUR
CLASSES = {"high": {"priority": 40}, "low": {"priority": 10}}


def a_full_node(*hours: float, patience: str = "1d") -> Hall:
    """One node of as many GPUs, each held for so long."""
    policy = a_policy(classes=CLASSES, sharing={"patience": patience})
    hall = a_world(a_site(nodes=1, gpus=len(hours)), policy=policy)
    for number, held in enumerate(hours):
        job = f"held{number}/train"
        hall.run(a_job(job, gpus=1, scheduling_class="low", max_duration_seconds=held * HOUR))
    return hall


def wait(hall: Hall, name: str, gpus: int, hours: float, scheduling_class: str = "low") -> None:
    request = a_job(
        f"{name}/train", gpus=gpus, scheduling_class=scheduling_class, max_duration_seconds=hours * HOUR
    )
    hall.submit(request)
    hall.wait(1.0)


def turns(hall: Hall, lately: Lately | None = None) -> dict[str, int]:
    """In whole hours from now."""
    slots = Slots(hall.state, hall.policy, hall.at, lately or Lately())
    waiting = [job_id for queue in hall.state.waiting.values() for _, _, job_id in queue]
    return {
        job_id.partition("/")[0]: round((slots.start_of(hall.job(job_id)) - hall.at) / HOUR)
        for job_id in waiting
    }


def test_each_takes_what_the_next_to_leave_leaves_and_leaves_it_to_another() -> None:
    hall = a_full_node(1.0, 2.0)
    for name, hours in (("a", 5.0), ("b", 1.0), ("c", 1.0)):
        wait(hall, name, 1, hours)
    assert turns(hall) == {"a": 1, "b": 2, "c": 3}


def test_a_higher_class_goes_first_and_one_that_needs_more_is_overtaken() -> None:
    hall = a_full_node(1.0, 2.0, 3.0)
    wait(hall, "large", 2, 1.0)
    wait(hall, "small", 1, 9.0)
    wait(hall, "first", 1, 9.0, "high")
    assert turns(hall) == {"first": 1, "small": 2, "large": 10}


def test_for_who_was_overtaken_for_too_long_gpus_are_kept_as_they_leave() -> None:
    hall = a_full_node(30.0, 32.0)
    wait(hall, "large", 2, 1.0)
    hall.wait(25 * HOUR)
    wait(hall, "small", 1, 50.0)
    assert turns(hall) == {"large": 7, "small": 8}


def test_who_comes_later_is_put_behind_all_others_without_laying_them_out_again() -> None:
    hall = a_full_node(1.0, 2.0)
    wait(hall, "a", 1, 5.0)
    slots = Slots(hall.state, hall.policy, hall.at, Lately())
    wait(hall, "b", 1, 1.0)
    wait(hall, "c", 1, 1.0)
    found = [slots.start_of(hall.job(f"{name}/train")) - hall.at for name in "abc"]
    assert [round(seconds / HOUR) for seconds in found] == [1, 2, 3]
    wait(hall, "urgent", 1, 1.0, "high")
    assert not slots.places(hall.job("urgent/train"))


def test_what_came_before_others_lately_will_come_again() -> None:
    hall = a_full_node(2.0)
    wait(hall, "a", 1, 1.0)
    lately = Lately()
    lately.come(hall.at - 2 * HOUR, a_job("x/train", gpus=1, scheduling_class="low"))
    assert turns(hall, lately) == {"a": 2}
    ahead = a_job("y/train", gpus=1, scheduling_class="high", max_duration_seconds=HOUR)
    lately.come(hall.at - HOUR, ahead)
    assert turns(hall, lately) == {"a": 3}  # it comes in an hour, and goes first


@pytest.mark.parametrize("seconds", [None, HOUR])
def test_one_who_does_not_say_how_long_it_takes_is_seen(seconds: float | None) -> None:
    hall = a_full_node(1.0)
    assert all_say(hall.state)
    hall.submit(a_job("a/train", gpus=1, max_duration_seconds=seconds))
    assert all_say(hall.state) is (seconds is not None)


def test_who_never_gets_a_turn_is_told_the_end_of_what_is_looked_at() -> None:
    hall = a_full_node(1.0)
    wait(hall, "large", 2, 1.0)
    slots = Slots(hall.state, hall.policy, hall.at, Lately())
    assert slots.start_of(hall.job("large/train")) == hall.at + 7 * DAY
