"""Nodes of an emulated site fall asleep at once, and wake after what their site says."""

from __future__ import annotations

import pytest

from building import MONDAY, Hall, a_facility, a_policy, a_site
from wattline.facility import Sleep
from wattline.live.sleepers import Sleepers
from wattline.spec import Fault
from wattline.state import Acknowledged, ActionFailed, NodeSlept, NodeWoke
from wattline.telemetry import EmulatedFacility

NODE = "zurich/r1-n1"


def a_hall(telemetry: str = "emulated") -> Hall:
    site = a_site(
        nodes=1, other_watts=1000.0, telemetry=telemetry, sleep=Sleep(wake_seconds=60.0, asleep=0.1)
    )
    return Hall(a_facility(site), a_policy(scaling={"sleep_after": "1min"}), MONDAY)


def an_emulated(hall: Hall, *faults: Fault) -> EmulatedFacility:
    return EmulatedFacility(hall.state.plant.facility, faults, 0, MONDAY)


def rack_watts(emulated: EmulatedFacility, at: float) -> float:
    return next(each.value for each in emulated.readings(at) if each.quantity == "rack_watts")


def test_a_node_falls_asleep_draws_less_and_wakes_in_its_time() -> None:
    hall = a_hall()
    emulated = an_emulated(hall)
    sleepers = Sleepers(hall.state, emulated)
    awake = rack_watts(emulated, MONDAY)
    (sleep,) = hall.decide().actions
    (slept,) = sleepers.turn(sleep, MONDAY)
    assert isinstance(slept, NodeSlept)
    assert rack_watts(emulated, MONDAY + 1) == pytest.approx(0.1 * awake)
    wake = type(sleep)(id="w", kind=type(sleep.kind)("wake"), node=NODE)
    assert isinstance(sleepers.turn(wake, MONDAY + 2)[0], Acknowledged)
    assert isinstance(sleepers.turn(wake, MONDAY + 3)[0], Acknowledged)  # asked again: still at it
    assert sleepers.next_at == MONDAY + 62
    assert rack_watts(emulated, MONDAY + 4) == pytest.approx(awake)
    assert sleepers.poll(MONDAY + 61) == []
    (woke,) = sleepers.poll(MONDAY + 62)
    assert isinstance(woke, NodeWoke)


def test_what_slept_when_the_last_process_ended_still_does() -> None:
    hall = a_hall()
    hall.obey(hall.decide())
    emulated = an_emulated(hall)
    awake = rack_watts(emulated, MONDAY)
    Sleepers(hall.state, emulated)
    assert rack_watts(emulated, MONDAY + 1) == pytest.approx(0.1 * awake)


def test_a_node_that_nobody_can_send_to_sleep_says_so() -> None:
    hall = a_hall(telemetry="nvml")
    (sleep,) = hall.decide().actions
    (failed,) = Sleepers(hall.state, an_emulated(hall)).turn(sleep, MONDAY)
    assert isinstance(failed, ActionFailed)
    assert "not emulated" in failed.say


def test_a_rack_that_does_not_wake_sleeps_on() -> None:
    hall = a_hall()
    fault = Fault.model_validate({"name": "bmc", "at": {"after": "0s"}, "rack": "zurich/r1", "wakes": False})
    emulated = an_emulated(hall, fault)
    sleepers = Sleepers(hall.state, emulated)
    (sleep,) = hall.decide().actions
    sleepers.turn(sleep, MONDAY)
    asleep = rack_watts(emulated, MONDAY + 1)
    sleepers.turn(type(sleep)(id="w", kind=type(sleep.kind)("wake"), node=NODE), MONDAY + 2)
    (failed,) = sleepers.poll(MONDAY + 62)
    assert isinstance(failed, ActionFailed)
    assert rack_watts(emulated, MONDAY + 63) == pytest.approx(asleep)
