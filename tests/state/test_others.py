"""GPUs that somebody holds whom Wattline did not start: nobody is placed there, and their watts count."""

from __future__ import annotations

from building import MONDAY, Hall, a_facility, a_job, a_policy, a_site, assert_ledger_is_true
from wattline.state import State, dump_state, load_state

NODE = "zurich/r1-n1"


def a_hall(rack_cap_watts: float = 1e6) -> Hall:
    site = a_site(nodes=1, gpus=8, rack_cap_watts=rack_cap_watts)
    return Hall(a_facility(site), a_policy(), MONDAY)


def test_what_others_hold_is_not_free() -> None:
    hall = a_hall()
    hall.read(NODE, "others_gpus", 6.0)
    hall.submit(a_job("r1/train", gpus=4))
    assert not hall.decide().actions
    hall.wait(10.0)
    hall.read(NODE, "others_gpus", 4.0)
    (action,) = hall.decide().actions
    assert action.place is not None
    assert action.place.nodes == ((NODE, 4),)
    assert hall.state.ledger.gpus_free == [0]
    assert_ledger_is_true(hall.state)


def test_what_others_take_of_what_was_promised_leaves_nothing_and_not_less() -> None:
    hall = a_hall()
    hall.submit(a_job("r1/train", gpus=6))
    hall.obey(hall.decide())
    hall.wait(1.0)
    hall.read(NODE, "others_gpus", 5.0)
    assert hall.state.ledger.gpus_free == [0]
    hall.wait(1.0)
    hall.ended("r1/train")
    assert hall.state.ledger.gpus_free == [3]
    assert_ledger_is_true(hall.state)


def test_their_watts_count_for_all_that_is_above_them() -> None:
    hall = a_hall(rack_cap_watts=8 * 400.0)
    hall.read(NODE, "others_gpus", 5.0)
    rack = hall.state.plant.resource_number["zurich/r1"]
    device = hall.state.plant.spots[0].node.device
    assert device is not None
    above_idle = 5 * (device.limit_watts - device.idle_watts)
    idle = hall.state.plant.resources[rack].idle
    assert hall.state.ledger.promised[rack] == idle + above_idle
    assert not any(hall.state.ledger.claimed)
    hall.wait(1.0)
    hall.read(NODE, "others_gpus", 0.0)
    assert hall.state.ledger.promised[rack] == idle
    assert not hall.state.ledger.others


def test_a_state_that_is_written_and_read_knows_of_them() -> None:
    hall = a_hall()
    hall.submit(a_job("r1/train", gpus=2))
    hall.obey(hall.decide())
    hall.wait(1.0)
    hall.read(NODE, "others_gpus", 5.0)
    loaded: State = load_state(hall.state.plant.facility, dump_state(hall.state))
    assert loaded.ledger.gpus_free == hall.state.ledger.gpus_free == [1]
    assert loaded.ledger.promised == hall.state.ledger.promised


def test_more_than_a_node_has_counts_as_all_of_it() -> None:
    hall = a_hall()
    hall.read(NODE, "others_gpus", 99.0)
    assert hall.state.ledger.gpus_free == [0]
    assert hall.state.ledger.others == {0: 8}
