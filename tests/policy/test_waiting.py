"""Which end makes room: found without going through all that run, and true."""

from __future__ import annotations

from building import Hall, a_job, a_site, a_world, kinds
from wattline.policy.waiting import Ends, find_wait
from wattline.state import Ending


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
    assert [job.id for _, job in ends.upcoming(hall.snapshot())] == ["r1/train", "r0/train"]
    hall.ended("r1/train", Ending.SUCCEEDED)
    hall.run(a_job("r2/train", max_duration_seconds=7200.0))
    assert Ends.of(hall.snapshot()) is ends
    assert [job.id for _, job in ends.upcoming(hall.snapshot())] == ["r2/train", "r0/train"]
