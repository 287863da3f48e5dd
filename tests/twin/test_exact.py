"""The exact placement keeps every limit, and is never worse than placing one after the other."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")

from bench.exact_placement import compare

from building import a_job, a_site, a_world
from wattline.state import Place
from wattline.twin.exact import place_exactly


def test_the_long_job_gets_the_cheap_place_though_the_short_one_came_first() -> None:
    hall = a_world(
        a_site("zurich", racks=1, nodes=1, gpus=2, usd_per_kwh=0.1),
        a_site("oslo", racks=1, nodes=1, gpus=2, usd_per_kwh=2.0),
    )
    short = a_job("a/train", gpus=2, max_duration_seconds=3600.0)
    long = a_job("b/train", gpus=2, max_duration_seconds=36000.0)
    found = place_exactly(hall.snapshot(), hall.policy, [short, long])
    assert found.places["b/train"] == Place("zurich", (("zurich/r1-n1", 2),))
    assert found.places["a/train"].site == "oslo"


def test_what_the_rack_does_not_carry_waits() -> None:
    hall = a_world(a_site(racks=1, nodes=1, rack_cap_watts=1300.0))
    jobs = [a_job(f"{name}/train", gpus=2) for name in "ab"]
    assert len(place_exactly(hall.snapshot(), hall.policy, jobs).places) == 1


def test_a_gang_is_spread_over_the_nodes_of_one_pool() -> None:
    hall = a_world(a_site(racks=2, nodes=1, gpus=4))
    found = place_exactly(hall.snapshot(), hall.policy, [a_job(gpus=6)])
    assert sum(gpus for _, gpus in found.places["r1/train"].nodes) == 6


@pytest.mark.parametrize("seed", range(4))
def test_on_random_instances_it_is_a_bound(seed: int) -> None:
    found = compare(seed)
    assert found.gap >= -1e-3
    assert found.exact >= found.least * (1 - 1e-3)
