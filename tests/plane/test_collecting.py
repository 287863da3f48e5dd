"""Garbage is looked for between turns, and is found."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from wattline.plane import collecting
from wattline.plane.collecting import collecting_between_turns

MANY = 20_000  # objects: far more than a turn or an answer makes, and than Python itself would wait for


class _Knot:
    """Points at itself: only the collector frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collected() -> Iterator[list[int]]:
    """The generation of each collection, as they happen."""
    found: list[int] = []

    def note(phase: str, details: dict[str, int]) -> None:
        if phase == "start":
            found.append(details["generation"])

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


def test_nobody_waits_for_the_collector_within_a_turn(collected: list[int]) -> None:
    with collecting_between_turns():
        collected.clear()
        kept = [[number] for number in range(MANY)]
        assert collected == []
    assert len(kept) == MANY


def test_what_points_at_itself_is_freed_after_its_turn() -> None:
    with collecting_between_turns() as collect:
        knot = _Knot()
        seen = weakref.ref(knot)
        del knot
        kept = [[number] for number in range(MANY)]
        assert seen() is not None
        collect()
        assert seen() is None
    assert kept


def test_what_grew_old_is_gone_through_too_after_many_turns(
    collected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "_MIDDLE", 3)
    monkeypatch.setattr(collecting, "_OLD", 4)
    with collecting_between_turns() as collect:
        knot = _Knot()
        seen = weakref.ref(knot)
        for number in range(60):
            garbage = [_Knot() for _ in range(3_000)]
            collect()
            if number == 30:  # it has outlived the young and the middle-aged
                del knot
        assert set(collected) == {0, 1, 2}
        assert seen() is None
    assert garbage


def test_afterwards_it_is_as_it_was() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with collecting_between_turns():
        assert gc.get_threshold() != before
        assert gc.get_freeze_count() > frozen
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
