"""A claim follows from its request, its place and its cap, whatever was asked before."""

from __future__ import annotations

import random

import pytest

from building import a_device, a_job, a_site, a_world
from wattline.state import Place, claim_of
from wattline.state.claim import taking_of


def test_the_last_claim_answers_for_nothing_but_itself() -> None:
    plant = a_world(a_site(racks=2, nodes=1, gpus=4)).state.plant
    one, other = (Place(plant.spots[node].site.name, ((plant.spots[node].node.name, 2),)) for node in (0, 1))
    small, large = a_job("r1/train", gpus=2, cpus=1), a_job("r2/train", gpus=2, cpus=3)
    asked = [
        (request, place, fraction)
        for request in (small, large)
        for place in (one, other)
        for fraction in (1.0, 0.5)
    ]
    fresh = []
    for each in asked:
        plant.last_claim = None
        fresh.append(claim_of(each[0], each[1], plant, each[2]))
    for before in asked:
        for each, expected in zip(asked, fresh, strict=True):
            claim_of(before[0], before[1], plant, before[2])
            assert claim_of(each[0], each[1], plant, each[2]) == expected
    assert len({claim.nodes for claim in fresh}) == 2
    assert len({claim.millicpus for claim in fresh}) == 2
    assert len({claim.gpu_watts for claim in fresh}) == 2


@pytest.mark.parametrize("seed", range(20))
def test_a_gang_takes_what_its_nodes_take_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    device = a_device(idle_watts=chance.choice((0.0, 37.3)))
    feeds = chance.choice(((1e9,), (1e9, 1e9), (1e9, 1e9, 1e9)))
    site = a_site(
        racks=5, nodes=3, loops=2, device=device, feeds_watts=feeds, redundant=chance.random() < 0.5
    )
    plant = a_world(site).state.plant
    spots = chance.sample(plant.spots, chance.randrange(2, len(plant.spots)))
    place = Place("zurich", tuple((spot.node.name, chance.randrange(1, 9)) for spot in spots))
    watts = chance.choice((None, 123.45 * place.gpus))
    request, fraction = a_job(gpus=place.gpus, peak_watts=watts), chance.choice((1.0, 0.77))
    takings = [
        taking_of(request, plant, plant.node_number[name], gpus, fraction) for name, gpus in place.nodes
    ]
    amounts: dict[int, int] = {}
    for taking in takings:
        for resource, amount in taking.amounts:
            amounts[resource] = amounts.get(resource, 0) + amount
    claim = claim_of(request, place, plant, fraction)
    assert claim.amounts == tuple(sorted(amounts.items())), seed
    assert claim.gpu_watts == max(taking.gpu_watts for taking in takings), seed
