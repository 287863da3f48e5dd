"""One figure for each number of GPUs answers for all watts, and follows what changes."""

from __future__ import annotations

from building import Hall, a_job, a_site, a_world
from wattline.policy.headroom.leeway import Leeway
from wattline.policy.headroom.power import headroom_of
from wattline.state import Snapshot, claim_of


def look(leeway: Leeway, hall: Hall, snapshot: Snapshot) -> Leeway:
    thresholds = hall.policy.thresholds
    leeway.look(snapshot, headroom_of(snapshot, thresholds), snapshot.stamp(0, thresholds.reading_max_age))
    return leeway


def test_it_is_what_the_roomiest_rack_with_enough_gpus_has_left() -> None:
    hall = a_world(a_site(racks=2, nodes=1, gpus=8, rack_cap_watts=3000.0))
    hall.run(a_job(gpus=6, peak_watts=600.0))
    leeway = look(Leeway(hall.state.plant, 0), hall, hall.snapshot())
    usable = 3000.0 * (1 - hall.policy.thresholds.power_margin)
    assert leeway.watts(8) == int(usable)
    assert leeway.watts(9) < 0.0


def test_what_is_above_all_racks_bounds_it() -> None:
    hall = a_world(a_site(racks=2, nodes=1, rack_cap_watts=3000.0, feeds_watts=(1000.0,)))
    leeway = look(Leeway(hall.state.plant, 0), hall, hall.snapshot())
    assert leeway.watts(1) == int(1000.0 * (1 - hall.policy.thresholds.power_margin))
    assert 2.0 <= leeway.most_spread(400.0) < 3.0


def test_racks_that_carry_none_add_nothing_to_a_spread() -> None:
    hall = a_world(a_site(racks=4, nodes=1, rack_cap_watts=300.0))
    leeway = look(Leeway(hall.state.plant, 0), hall, hall.snapshot())
    assert leeway.most_spread(400.0) < 1.0
    assert leeway.most_spread(100.0) >= 8.0


def test_what_is_laid_over_is_seen_and_seen_no_more_once_it_is_taken_away() -> None:
    hall = a_world(a_site(racks=1, nodes=1, gpus=8, rack_cap_watts=4000.0))
    leeway, snapshot = Leeway(hall.state.plant, 0), hall.snapshot().copy()
    before = look(leeway, hall, snapshot).watts(2)
    place = hall.snapshot().plant.spots[0]
    assert place.node.gpus == 8
    request = a_job(gpus=7)
    hall.submit(request)
    snapshot = hall.snapshot().copy()
    choice = hall.decide().actions[0].place
    assert choice is not None
    snapshot = hall.snapshot().copy()
    held = claim_of(request, choice, snapshot.plant)
    assert look(leeway, hall, snapshot).watts(2) < 0.0
    snapshot.keep(held, -1)
    assert look(leeway, hall, snapshot).watts(2) == before
    snapshot.keep(held, 1)
    assert look(leeway, hall, snapshot).watts(2) < 0.0


def test_what_is_spread_exactly_is_counted_by_racks_and_what_is_above_them() -> None:
    hall = a_world(a_site(racks=3, nodes=1, rack_cap_watts=1000.0, feeds_watts=(2600.0,)))
    leeway = look(Leeway(hall.state.plant, 0), hall, hall.snapshot())
    each = 500.0 * (1 - hall.policy.thresholds.power_margin)  # two on each rack, and five on the feed
    assert leeway.spreads(each, 5)
    assert not leeway.spreads(each, 6)
    assert leeway.spreads(each + 1.0, 3)
    assert not leeway.spreads(each + 1.0, 4)


def test_what_was_known_before_something_was_laid_over_is_known_after() -> None:
    hall = a_world(a_site(racks=2, nodes=1, rack_cap_watts=4000.0))
    hall.run(a_job("r0/train", gpus=6, max_duration_seconds=60.0))
    leeway, snapshot = Leeway(hall.state.plant, 0), hall.snapshot()
    before = look(leeway, hall, snapshot).watts(8)
    after = snapshot.copy()
    claim = snapshot.claim("r0/train")
    assert claim is not None
    after.keep(claim)
    look(leeway, hall, after).watts(8)
    assert look(leeway, hall, snapshot).watts(8) == before
    hall.ended("r0/train")
    assert look(leeway, hall, hall.snapshot()).watts(8) == before
