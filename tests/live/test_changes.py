"""Changes: what moved is told, what stands is vouched for, what falls silent is not."""

from __future__ import annotations

from building import a_facility, a_site
from metering import a_hall
from wattline.live.changes import Changes
from wattline.state import Measured, Snapshot, State
from wattline.telemetry import Batch, Reading

RACK, NODE = "zurich/r1", "zurich/r1-n1"


def a_batch(at: float, *readings: tuple[str, str, float], source: int = 0, age: float = 2.0) -> Batch:
    found = [
        Reading(subject, quantity, value, at - age, "prometheus") for subject, quantity, value in readings
    ]
    return Batch(source, "prometheus", "zurich", at, found)


def told(events: list[Measured]) -> list[tuple[float, str, float | None]]:
    return [(event.at, subject, value) for event in events for subject, _, value in event.readings]


def test_what_has_not_moved_is_vouched_for_and_not_told_again() -> None:
    changes = Changes()
    first = changes.tell(a_batch(100.0, (RACK, "rack_watts", 9000.0)))
    assert told(first) == [(98.0, RACK, 9000.0)]
    second = changes.tell(a_batch(110.0, (RACK, "rack_watts", 9040.0)))  # less than half a percent
    assert [(event.at, event.readings, event.unchanged) for event in second] == [(108.0, (), ("zurich",))]
    assert told(changes.tell(a_batch(120.0, (RACK, "rack_watts", 9050.0)))) == [(118.0, RACK, 9050.0)]


def test_of_a_nodes_gpus_all_are_told_when_one_moves() -> None:
    changes = Changes()
    gpus = [(f"{NODE}/gpu{number}", "gpu_celsius", 60.0 + number) for number in range(3)]
    changes.tell(a_batch(100.0, *gpus))
    moved = changes.tell(a_batch(110.0, *gpus[:2], (f"{NODE}/gpu2", "gpu_celsius", 55.0)))
    assert sorted(told(moved)) == [
        (108.0, f"{NODE}/gpu{n}", value) for n, value in enumerate((60.0, 61.0, 55.0))
    ]


def test_a_meter_that_falls_silent_ages_from_its_last_reading_not_from_its_last_change() -> None:
    facility = a_hall({"source": "prometheus", "url": "http://p", "series": {"rack_watts": {"query": "x"}}})
    state, changes = State(facility), Changes()
    both = [("zurich/r1", "rack_watts", 9000.0), ("zurich/r2", "rack_watts", 8000.0)]
    for at in (100.0, 110.0, 120.0, 130.0):
        state.fold(changes.tell(a_batch(at, *both)))
    one, other = (state.plant.resource_number[name] for name in ("zurich/r1", "zurich/r2"))
    assert Snapshot(state, 131.0).is_read(one, 5.0)  # read at 128, though it last moved at 98
    for at in (140.0, 150.0):
        state.fold(changes.tell(a_batch(at, both[1])))
    assert Snapshot(state, 150.0).is_read(one, 30.0)  # as of 128
    assert not Snapshot(state, 150.0).is_read(one, 20.0)
    assert Snapshot(state, 150.0).is_read(other, 5.0)
    state.fold(changes.tell(a_batch(160.0, *both)))
    assert Snapshot(state, 160.0).is_read(one, 5.0)


def test_a_source_that_fails_takes_nothing_from_what_another_vouches_for() -> None:
    changes = Changes()
    changes.tell(a_batch(100.0, (RACK, "rack_watts", 1.0), source=0))
    changes.tell(a_batch(101.0, ("zurich/loop", "loop_heat_watts", 1.0), source=1))
    held = changes.tell(a_batch(110.0, (RACK, "rack_watts", 1.0), source=0))
    assert [event.at for event in held if event.unchanged] == [99.0]  # the older of the two
    failed = changes.tell(Batch(1, "snmp", "zurich", 111.0, None))
    assert told(failed) == [(99.0, "zurich/loop", 1.0), (111.0, "zurich/loop", None)]
    assert [event.at for event in failed if event.unchanged] == [108.0]


def test_counters_are_not_told() -> None:
    assert told(Changes().tell(a_batch(1.0, (f"{NODE}/gpu0", "gpu_joules", 5.0)))) == []


def test_a_rack_without_a_meter_goes_by_claims_at_a_site_whose_other_racks_have_one() -> None:
    series = {"supply_watts": {"oid": "1.3.6.1.4.1.1"}}
    facility = a_hall({"source": "snmp", "targets": {"feed-a": "10.0.0.1"}, "series": series})
    state = State(facility)
    number = state.plant.resource_number
    assert state.ledger.metered[number["zurich/feed-a"]]
    assert not state.ledger.metered[number["zurich/r1"]]
    assert Snapshot(State(a_facility(a_site(telemetry="none"))), 0.0).is_metered(0) is False
