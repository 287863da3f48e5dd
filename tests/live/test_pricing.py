from __future__ import annotations

import pytest

from building import a_facility, a_job, a_link, a_site
from wattline.live.pricing import price_save_seconds
from wattline.state import Job, JobState, Place, Plant, Saved

PLANT = Plant(a_facility(a_site(), a_site("lulea"), links=[a_link(("zurich", "lulea"))]))
HERE = Place("zurich", (("zurich/r1-n1", 2),))


def a_saved_job(size_bytes: int | None, *, gpus: int = 2, replicate_to: tuple[str, ...] = ("lulea",)) -> Job:
    saved = None if size_bytes is None else Saved(1, 0.0, "zurich", size_bytes=size_bytes)
    request = a_job(gpus=gpus, replicate_to=replicate_to)
    return Job(request=request, state=JobState.STARTING, submitted_at=0.0, since=0.0, saved=saved)


def test_a_copy_costs_what_its_link_takes_in_seconds_of_the_job_s_gpus() -> None:
    # 50 GB at 0.02 USD, against two GPUs at 1 USD an hour.
    seconds = price_save_seconds(a_saved_job(50 * 10**9), HERE, PLANT)
    assert seconds == pytest.approx(50 * 0.02 / (2 * 1.0 / 3600.0))


@pytest.mark.parametrize(
    "job",
    [a_saved_job(None), a_saved_job(10**9, replicate_to=()), a_saved_job(10**9, gpus=0)],
    ids=["size not known", "no copies", "no GPUs"],
)
def test_what_has_no_price_moves_nothing(job: Job) -> None:
    assert price_save_seconds(job, HERE, PLANT) == 0.0
