"""What is left of a resource is what may be used of it less what is drawn or promised."""

from __future__ import annotations

import pytest

from building import Hall, a_job, a_site, a_world
from wattline.state import Snapshot, claim_of
from wattline.state.left import Left

_MAX_AGE_SECONDS = 60.0


def a_busy_hall() -> Hall:
    hall = a_world(a_site(racks=2, nodes=2, gpus=4, telemetry="emulated"))
    hall.run(a_job(gpus=3))
    return hall


def assert_nothing_is_missing(snapshot: Snapshot) -> None:
    shares = [0.5] * len(snapshot.plant.resources)
    left = Left(snapshot, shares, _MAX_AGE_SECONDS)
    for resource in range(len(shares)):
        usable = 0.5 * snapshot.cap(resource)
        assert left[resource] == max(0.0, usable - snapshot.used(resource, _MAX_AGE_SECONDS))


def test_of_what_nobody_has_read_the_worst_counts() -> None:
    assert_nothing_is_missing(a_busy_hall().snapshot())


@pytest.mark.parametrize("watts", [0.0, 900.0, 1e6])
def test_of_what_was_read_the_reading_or_the_promise_counts_whichever_is_more(watts: float) -> None:
    hall = a_busy_hall()
    for rack in hall.state.plant.facility.sites[0].racks:
        hall.read(rack.name, "rack_watts", watts)
    assert_nothing_is_missing(hall.snapshot())


@pytest.mark.parametrize("sign", [-1, 1])
def test_what_is_laid_over_counts_too(sign: int) -> None:
    hall = a_busy_hall()
    snapshot = hall.snapshot().copy()
    (job,) = snapshot.jobs.values()
    assert job.place is not None
    snapshot.keep(claim_of(job.request, job.place, snapshot.plant), sign)
    assert_nothing_is_missing(snapshot)
