"""What is known not to fit is not looked for again, for more watts either; what may fit is not held back."""

from __future__ import annotations

import random

import pytest

from building import Hall, a_job, a_site, a_world
from wattline.policy.headroom.loosening import Loosened
from wattline.policy.placing.placement import choose_place
from wattline.spec.pipeline import Locality
from wattline.state import JobRequest, claim_of


def a_mixed_hall(chance: random.Random) -> Hall:
    """Caps that bind now at racks, now at a feed, with some of it taken."""
    hall = a_world(
        a_site("zurich", racks=3, nodes=2, rack_cap_watts=chance.choice((2000.0, 3500.0, 9000.0))),
        a_site("oslo", racks=2, nodes=2, feeds_watts=[chance.choice((4000.0, 9000.0))]),
    )
    for number in range(chance.randrange(12)):
        gpus = chance.choice((1, 2, 4, 8))
        hall.submit(a_job(f"r{number}/train", gpus=gpus, peak_watts=gpus * chance.uniform(100.0, 400.0)))
        hall.obey(hall.decide())
    return hall


def a_random_request(chance: random.Random, number: int) -> JobRequest:
    gpus = chance.choice((1, 1, 2, 4, 8, 12, 20))
    each = chance.choice((None, *[chance.uniform(50.0, 400.0) for _ in range(4)]))
    return a_job(
        f"n{number}/train",
        gpus=gpus,
        peak_watts=None if each is None else gpus * each,
        locality=chance.choice((Locality.ANY, Locality.NODE)),
    )


@pytest.mark.parametrize("seed", range(12))
def test_whoever_finds_a_place_may_fit_there_while_others_take_theirs(seed: int) -> None:
    chance = random.Random(seed)
    hall = a_mixed_hall(chance)
    draft = hall.snapshot().copy()
    loosened = Loosened(draft, hall.policy, range(len(draft.plant.pools)))
    placed = refused = 0
    for number in range(60):
        request = a_random_request(chance, number)
        may_fit, pools = loosened.may_fit(request), loosened.pools(request)
        place = choose_place(draft, hall.policy, request, explain=False).place
        assert may_fit or not pools
        if place is None:
            refused += not may_fit
            continue
        spot = draft.plant.spots[draft.plant.node_number[place.nodes[0][0]]]
        assert may_fit
        assert spot.pool in pools
        draft.keep(claim_of(request, place, draft.plant))
        loosened.take(place.site)
        placed += 1
    assert placed + refused > 0


def test_nothing_fits_where_nothing_was_loosened() -> None:
    hall = a_world()
    loosened = Loosened(hall.snapshot(), hall.policy, [])
    assert not loosened.may_fit(a_job())
    assert loosened.pools(a_job()) == []


def test_what_does_not_fit_on_one_node_may_be_spread_unless_it_must_not() -> None:
    hall = a_world(a_site(racks=2, nodes=1, rack_cap_watts=4000.0))
    loosened = Loosened(hall.snapshot(), hall.policy, [0])
    assert loosened.may_fit(a_job(gpus=16))
    assert not loosened.may_fit(a_job(gpus=16, locality=Locality.NODE))
