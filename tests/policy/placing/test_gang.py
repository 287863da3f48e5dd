"""A job that needs several nodes takes those that can be powered and cooled, however they stand."""

from __future__ import annotations

import math
import random

import pytest

from building import a_job, a_site, a_world, kinds
from wattline.policy.headroom.power import headroom_of
from wattline.policy.headroom.rooms import Rooms
from wattline.policy.placing.gang import Spread
from wattline.spec import Locality
from wattline.state import JobState


def test_a_gang_spreads_over_racks_that_could_not_carry_it_alone() -> None:
    """Each rack has four nodes and power for three."""
    hall = a_world(a_site(racks=2, nodes=4, rack_cap_watts=3 * 3200.0))
    hall.run(a_job(gpus=32))
    assert str(hall.job().place) == ("zurich/r1-n1×8, zurich/r1-n2×8, zurich/r1-n3×8, zurich/r2-n1×8")


def test_a_gang_takes_parts_of_nodes_where_whole_ones_cannot_be_powered() -> None:
    hall = a_world(a_site(racks=2, nodes=2, rack_cap_watts=6 * 400.0))
    hall.run(a_job(gpus=12))
    assert str(hall.job().place) == "zurich/r1-n1×6, zurich/r2-n1×6"


def test_a_gang_keeps_below_what_others_left_of_a_rack() -> None:
    hall = a_world(a_site(racks=2, nodes=4, rack_cap_watts=3 * 3200.0))
    hall.run(a_job("r0/train", gpus=8))
    hall.run(a_job("r1/train", gpus=32))
    assert str(hall.job("r1/train").place) == (
        "zurich/r1-n2×8, zurich/r1-n3×8, zurich/r2-n1×8, zurich/r2-n2×8"
    )


def test_a_gang_that_all_caps_together_cannot_carry_is_refused() -> None:
    hall = a_world(a_site(racks=2, nodes=4, rack_cap_watts=3 * 3200.0))
    hall.submit(a_job("r1/train", gpus=56), a_job("r2/train", gpus=32, locality=Locality.RACK))
    assert kinds(hall.decide()) == [("refuse", "r1/train"), ("refuse", "r2/train")]
    assert "power.rack" in hall.job("r1/train").say


def test_a_gang_that_not_even_one_gpu_of_fits_is_refused_though_the_caps_add_up() -> None:
    hall = a_world(a_site(racks=8, nodes=1, rack_cap_watts=399.0))
    hall.submit(a_job(gpus=2))
    assert kinds(hall.decide()) == [("refuse", "r1/train")]


def test_a_gang_that_other_arrangements_might_fit_waits() -> None:
    """Either of two loops could cool half of the gang; what is tried puts all of it on one."""
    hall = a_world(a_site(racks=2, loops=2, loop_watts=6400.0, supply_celsius=37.0))
    hall.submit(a_job(gpus=16))
    assert kinds(hall.decide()) == []
    assert hall.job().state is JobState.WAITING
    assert [verdict.rule for verdict in hall.job().verdicts if not verdict.allows] == ["heat.throttle"]


def test_a_gang_does_not_start_over_a_node_that_is_too_hot() -> None:
    hall = a_world(a_site(nodes=2))
    hall.read("zurich/r1-n1/gpu0", "gpu_celsius", 90.0)
    hall.submit(a_job(gpus=16))
    assert kinds(hall.decide()) == []
    assert [verdict.rule for verdict in hall.job().verdicts if not verdict.allows] == ["heat.throttle"]


def test_a_gang_goes_around_a_node_that_is_too_hot() -> None:
    hall = a_world(a_site(nodes=3))
    hall.read("zurich/r1-n1/gpu0", "gpu_celsius", 90.0)
    hall.run(a_job(gpus=16))
    assert str(hall.job().place) == "zurich/r1-n2×8, zurich/r1-n3×8"


def test_the_node_with_the_cpus_comes_first() -> None:
    hall = a_world(a_site(nodes=2, cpus=8))
    hall.run(a_job("r0/prepare", gpus=0, cpus=6.0))
    hall.run(a_job("r1/train", gpus=16, cpus=4.0))
    assert str(hall.job("r1/train").place) == "zurich/r1-n2×8, zurich/r1-n1×8"


def laid_out_plainly(spread: Spread) -> tuple[tuple[int, int], ...]:
    """Node by node, with nothing passed over: the one that carries most, then whole ones, then parts."""
    snapshot, wanted = spread.snapshot, spread.request.gpus
    nodes = sorted(range(len(snapshot.plant.spots)), key=lambda node: (-snapshot.gpus_free(node), node))
    left = {number: spread.headroom[number] for node in nodes for number, _ in spread.loads(node)}
    taken: dict[int, int] = {}

    def able(node: int) -> int:
        carried = [math.floor(left[number]) // watts for number, watts in spread.loads(node)]
        return int(min(wanted - sum(taken.values()), snapshot.gpus_free(node), *carried))

    def take(node: int) -> None:
        taken[node] = able(node)
        for number, watts in spread.loads(node):
            left[number] -= math.ceil(taken[node] * watts)

    take(max(nodes, key=able))
    for is_whole in (True, False):
        for node in nodes:
            missing = wanted - sum(taken.values())
            least = min(missing, snapshot.gpus_free(node)) if is_whole else 1
            if node not in taken and missing and able(node) >= max(1, least):
                take(node)
    return tuple(taken.items()) if sum(taken.values()) == wanted else ()


@pytest.mark.parametrize("seed", range(40))
def test_racks_and_loops_that_are_passed_over_would_not_have_been_taken(seed: int) -> None:
    chance = random.Random(seed)
    loops = chance.choice((1, 2, 3))
    hall = a_world(
        a_site(
            racks=6,
            nodes=3,
            rack_cap_watts=chance.choice((1500.0, 2600.0, 5000.0)),
            loops=loops,
            loop_watts=chance.choice((4000.0, 9000.0)),
        )
    )
    for number in range(10):
        watts = 100.0 * chance.randrange(1, 5)
        gpus = chance.choice((1, 2, 3, 5))
        hall.submit(a_job(f"r{number}/train", gpus=gpus, peak_watts=gpus * watts))
        hall.obey(hall.decide())
    for number in chance.sample(range(10), 4):
        if f"r{number}/train" in hall.state.holding:
            hall.ended(f"r{number}/train")
    snapshot, thresholds = hall.snapshot(), hall.policy.thresholds
    headroom, rooms = headroom_of(snapshot, thresholds), Rooms.of(snapshot, thresholds)
    for gpus in (9, 12, 20):
        request = a_job("n/train", gpus=gpus, peak_watts=gpus * 50.0 * chance.randrange(3, 9))
        room = rooms.room(snapshot, headroom, request.each_watts, 0)
        spread = Spread(snapshot=snapshot, thresholds=thresholds, request=request, headroom=headroom)
        plainly = laid_out_plainly(spread)
        assert bool(plainly) == room.spreads(gpus)
        if plainly:
            assert next(spread.places(0, room)) == plainly
