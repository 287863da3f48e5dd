"""How does a save get a copy of the state while training goes on?"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattline.checkpoint import DisturbedError, LocalStore, Series, Still, restore
from wattline.checkpoint.staging import Staging


@pytest.fixture
def leave(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """What holds still is copied only when this is set."""
    event, copy = threading.Event(), Staging.copy_watched

    def copy_with_leave(self: Staging) -> None:
        assert event.wait(30)
        copy(self)

    monkeypatch.setattr(Staging, "copy_watched", copy_with_leave)
    return event


class Counted:
    """An array whose owner counts its own changes."""

    def __init__(self, seed: int = 0) -> None:
        self.array = np.random.default_rng(seed).standard_normal(50_000)
        self.changes = 0

    def still(self) -> Still:
        before = self.changes
        return Still(self.array, lambda: self.changes != before)

    def change(self) -> None:
        self.array += 1.0
        self.changes += 1


def series(root: Path) -> Series:
    return Series(LocalStore(root), epoch=0, keep=None, lineage={})


def kept(root: Path) -> Any:
    restored = restore(LocalStore(root))
    assert restored is not None
    return restored.tree


def test_what_holds_still_may_change_once_it_was_released(tmp_path: Path, leave: threading.Event) -> None:
    saving, weights = series(tmp_path), Counted()
    before = weights.array.copy()
    saving.begin({"w": weights.still(), "n": [1, weights.still()]}, 1)
    threading.Timer(0.05, leave.set).start()
    saving.release()
    weights.change()
    saving.end()
    assert np.array_equal(kept(tmp_path)["w"], before)
    assert np.array_equal(kept(tmp_path)["n"][1], before)
    written = saving.take()
    assert written is not None
    assert 0.02 < written.stopped_seconds < written.seconds  # the wait counts


def test_without_a_release_the_end_waits_as_well(tmp_path: Path, leave: threading.Event) -> None:
    saving, weights = series(tmp_path), Counted()
    saving.begin({"w": weights.still()}, 1)
    leave.set()
    saving.end()
    assert np.array_equal(kept(tmp_path)["w"], weights.array)
    saving.release()  # there is nothing left to wait for


def test_a_change_that_the_owner_counted_too_early_is_told_and_nothing_is_published(
    tmp_path: Path, leave: threading.Event
) -> None:
    saving, weights = series(tmp_path), Counted()
    saving.begin({"net": {"w": weights.still()}}, 1)
    weights.change()
    leave.set()
    saving.release()
    saving.end()
    written = saving.take()
    assert written is not None
    assert written.saved is None
    assert isinstance(written.error, DisturbedError)
    assert written.error.message == "net/w was changed while it was copied"
    assert restore(LocalStore(tmp_path)) is None


def test_a_change_that_nobody_counted_is_seen_at_a_glance(tmp_path: Path, leave: threading.Event) -> None:
    saving, weights = series(tmp_path), Counted()
    saving.begin({"w": weights.still()}, 1)
    weights.array *= 0.5
    leave.set()
    saving.end()
    written = saving.take()
    assert written is not None
    assert isinstance(written.error, DisturbedError)


def test_after_a_disturbance_everything_is_copied_at_once(tmp_path: Path, leave: threading.Event) -> None:
    saving, weights = series(tmp_path), Counted()
    saving.begin({"w": weights.still()}, 1)
    weights.change()
    leave.set()
    saving.end()
    saving.take()
    leave.clear()
    before = weights.array.copy()
    saving.begin({"w": weights.still()}, 2)
    weights.change()  # still too early, and this time it does not matter
    leave.set()
    saving.end()
    written = saving.take()
    assert written is not None
    assert written.error is None
    assert np.array_equal(kept(tmp_path)["w"], before)


@pytest.mark.parametrize(
    "array", [np.arange(10.0), np.asfortranarray(np.arange(90_000.0).reshape(300, 300))], ids=["small", "F"]
)
def test_what_is_not_worth_watching_is_copied_at_once(
    tmp_path: Path, leave: threading.Event, array: np.ndarray[Any, Any]
) -> None:
    saving, before = series(tmp_path), array.copy()
    saving.begin({"w": Still(array, lambda: True)}, 1)
    array += 1
    leave.set()
    saving.end()
    assert np.array_equal(kept(tmp_path)["w"], before)
