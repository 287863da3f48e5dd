from __future__ import annotations

from collections.abc import Callable

import pytest

from building import Hall, a_job, a_site, a_world, kinds
from wattline.control import Decide
from wattline.state import Decision
from wattline.twin.baselines import decide_easy

Take = Callable[[Hall, Decide], Decision]

HOUR = 3600.0


@pytest.fixture
def hall(take: Take) -> Hall:
    """Six of eight GPUs are taken for at most two hours; the head of the line wants seven."""
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("runs/train", gpus=6, max_duration_seconds=2 * HOUR))
    take(hall, decide_easy)
    hall.wait(HOUR)
    hall.submit(a_job("head/train", gpus=7, max_duration_seconds=HOUR))
    return hall


@pytest.mark.parametrize(
    ("gpus", "limit_seconds", "starts"),
    [
        (2, HOUR, True),  # ends when the head begins
        (2, HOUR + 1, False),
        (1, 9 * HOUR, True),  # on the one GPU that the head does not need
        (1, None, True),
        (2, None, False),  # no limit counts as a long one
        (3, 60.0, False),  # does not fit now
    ],
)
def test_someone_goes_ahead_only_where_the_head_does_not_wait_for_it(
    take: Take, hall: Hall, gpus: int, limit_seconds: float | None, starts: bool
) -> None:
    hall.submit(a_job("x/train", gpus=gpus, max_duration_seconds=limit_seconds))
    assert kinds(take(hall, decide_easy)) == ([("start", "x/train")] if starts else [])


def test_spare_gpus_are_given_once(take: Take, hall: Hall) -> None:
    hall.submit(a_job("x/train"))
    hall.submit(a_job("y/train"))
    assert kinds(take(hall, decide_easy)) == [("start", "x/train")]


def test_a_short_job_passes_a_long_one_of_the_same_shape(take: Take, hall: Hall) -> None:
    hall.submit(a_job("long/train", gpus=2, max_duration_seconds=9 * HOUR))
    hall.submit(a_job("short/train", gpus=2, max_duration_seconds=60.0))
    assert kinds(take(hall, decide_easy)) == [("start", "short/train")]


def test_the_head_starts_as_soon_as_it_fits(take: Take, hall: Hall) -> None:
    hall.submit(a_job("x/train", gpus=2, max_duration_seconds=HOUR))
    take(hall, decide_easy)
    hall.wait(60)
    hall.ended("runs/train")
    assert kinds(take(hall, decide_easy)) == []
    hall.ended("x/train")
    assert kinds(take(hall, decide_easy)) == [("start", "head/train")]


def test_another_pool_than_the_reserved_one_is_free_to_all(take: Take) -> None:
    hall = a_world(a_site(nodes=1), a_site("geneva", nodes=1, gpus=2))
    hall.submit(a_job("runs/train", gpus=8, max_duration_seconds=HOUR))
    take(hall, decide_easy)
    hall.submit(a_job("head/train", gpus=4))
    hall.submit(a_job("x/train", gpus=2))
    decision = take(hall, decide_easy)
    assert kinds(decision) == [("start", "x/train")]
    assert decision.actions[0].place is not None
    assert decision.actions[0].place.site == "geneva"


def test_jobs_begun_in_the_same_turn_count_for_the_reservation(take: Take) -> None:
    hall = a_world(a_site(nodes=1))
    hall.submit(a_job("first/train", gpus=6, max_duration_seconds=HOUR))
    hall.submit(a_job("head/train", gpus=7))
    hall.submit(a_job("x/train", gpus=2, max_duration_seconds=HOUR))
    hall.submit(a_job("y/train", gpus=1))
    assert kinds(take(hall, decide_easy)) == [("start", "first/train"), ("start", "x/train")]
