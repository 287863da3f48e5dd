"""A claim follows from its request, its place and its cap, whatever was asked before."""

from __future__ import annotations

from building import a_job, a_site, a_world
from wattline.state import Place, claim_of


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
