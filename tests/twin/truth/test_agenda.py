"""The agenda: what is due next, and that a time set anew replaces the old one."""

import math

from wattline.twin.truth.agenda import Agenda


def test_events_happen_in_order_of_time_and_then_of_their_slots() -> None:
    agenda, happened = Agenda(), list[tuple[int, float]]()
    for number in range(3):
        agenda.add_slot(lambda at, number=number: happened.append((number, at)))  # type: ignore[misc]
    for slot, at in ((0, 5.0), (2, 3.0), (1, 3.0)):
        agenda.set(slot, at)
    while agenda.next_at() < math.inf:
        agenda.happen()
    assert happened == [(1, 3.0), (2, 3.0), (0, 5.0)]


def test_a_time_set_anew_replaces_the_old_one() -> None:
    agenda, happened = Agenda(), list[float]()
    slot = agenda.add_slot(happened.append)
    for at in (5.0, 9.0, 5.0, 7.0):
        agenda.set(slot, at)
    assert agenda.next_at() == 7.0
    agenda.happen()
    assert happened == [7.0]
    assert agenda.next_at() == math.inf


def test_what_is_called_off_does_not_happen() -> None:
    agenda = Agenda()
    slot = agenda.add_slot(lambda at: None)
    agenda.set(slot, 5.0)
    agenda.set(slot, math.inf)
    assert agenda.next_at() == math.inf
