"""What ends give back is the same, whether somebody looked after each of them or only after all."""

from __future__ import annotations

import random

import pytest

from building import Hall, a_job, a_policy, a_site, a_world
from wattline.policy.headroom.freeing import End, Fitting, Freed, Upcoming
from wattline.policy.placing.placement import choose_place
from wattline.state import JobRequest, Snapshot

WATTS = (120.0, 210.0, 400.0)


def a_busy_hall(chance: random.Random) -> Hall:
    """Short of power in its racks, or above them, or nowhere, by chance and by site."""
    sites = [
        a_site(
            name,
            racks=4,
            nodes=2,
            loops=chance.choice((1, 2, 4)),
            rack_cap_watts=chance.choice((1800.0, 2600.0, 1e6)),
            loop_watts=chance.choice((2500.0, 6000.0, 1e6)),
            feeds_watts=(chance.choice((6000.0, 9000.0, 1e6)),),
        )
        for name in ("oslo", "zurich")
    ]
    hall = a_world(*sites, policy=a_policy())
    for number in range(40):
        gpus = chance.choice((1, 2, 3, 8, 12))
        watts = gpus * chance.choice(WATTS)
        hall.submit(a_job(f"r{number}/train", gpus=gpus, peak_watts=watts, max_duration_seconds=3600.0))
        hall.obey(hall.decide())
    return hall


def ends_of(hall: Hall, snapshot: Snapshot, chance: random.Random) -> list[Upcoming]:
    found: list[Upcoming] = []
    for job_id in chance.sample(sorted(hall.state.holding), len(hall.state.holding)):
        job, claim = snapshot.jobs[job_id], snapshot.claim(job_id)
        assert job.place is not None
        assert claim is not None
        found.append((0.0, job_id, End.of(snapshot.plant, job.place.site, claim)))
    return found


def anew(
    hall: Hall, snapshot: Snapshot, asked: list[JobRequest], ends: list[Upcoming]
) -> list[dict[str, list[int]]]:
    """Where each may fit, for somebody who looks for the first time after all of these."""
    freed = Freed(snapshot, hall.policy)
    fitting = [Fitting(freed, request) for request in asked]
    for end in ends:
        freed.add(end)
    return [{site: there.pools() for site, there in each.sites.items()} for each in fitting]


@pytest.mark.parametrize("seed", range(30))
def test_whoever_looks_after_each_end_knows_what_one_knows_who_looks_for_the_first_time(seed: int) -> None:
    chance = random.Random(seed)
    hall = a_busy_hall(chance)
    snapshot = hall.snapshot()
    asked = [
        a_job(f"n{number}/train", gpus=gpus, peak_watts=gpus * chance.choice(WATTS))
        for number, gpus in enumerate((1, 4, 12, 20, 32))
    ]
    ends = ends_of(hall, snapshot, chance)
    freed = Freed(snapshot, hall.policy)
    fitting = [Fitting(freed, request) for request in asked]
    for count, end in enumerate(ends, 1):
        is_enough = freed.add(end)
        known = anew(hall, snapshot, asked, ends[:count])
        for request, each, expected in zip(asked, fitting, known, strict=True):
            there = each.sites[end[2].site]
            has_enough = there.has_enough()
            assert is_enough or not has_enough, (seed, count)
            if not has_enough:  # never too strict
                assert expected[end[2].site] == [], (seed, count, request.gpus)
            elif chance.random() < 0.7:
                assert there.pools() == expected[end[2].site], (seed, count, request.gpus)


@pytest.mark.parametrize("seed", range(10))
def test_where_a_place_is_found_after_some_ends_it_was_said_that_there_may_be_one(seed: int) -> None:
    chance = random.Random(seed)
    hall = a_busy_hall(chance)
    snapshot = hall.snapshot()
    ends, after = ends_of(hall, snapshot, chance), snapshot.copy()
    asked = [a_job("n/train", gpus=gpus, peak_watts=gpus * chance.choice(WATTS)) for gpus in (4, 12, 20)]
    for count, end in enumerate(ends, 1):
        after.keep(end[2].claim, -1)
        known = anew(hall, snapshot, asked, ends[:count])
        for request, each in zip(asked, known, strict=True):
            for pool in range(len(snapshot.plant.pools)):
                place = choose_place(after, hall.policy, request, only=[pool], explain=False).place
                site = snapshot.plant.pools[pool][0]
                assert place is None or pool in each[site], (seed, count, request.gpus)
