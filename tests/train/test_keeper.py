"""When is a run's state saved, where nobody said how often?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wattline.checkpoint import AutoCadence, LocalStore
from wattline.train import keeper as keeping
from wattline.train.keeper import Failed, Keeper, Kept


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(keeping, "time", clock)
    return clock


def make_keeper(root: Path, cadence: AutoCadence) -> Keeper:
    return Keeper(LocalStore(root), epoch=1, cadence=cadence, keep=3, lineage={})


def save_behind(keeper: Keeper) -> Kept | Failed | None:
    keeper.begin({"model": {"w": np.ones(3)}}, 1, {"loss": 0.5})
    keeper._series.end()
    return keeper.take()


def test_the_first_save_comes_soon_and_its_cost_decides_when_the_next_is_due(
    tmp_path: Path, clock: Clock
) -> None:
    cadence = AutoCadence()
    keeper = make_keeper(tmp_path, cadence)
    clock.now += 29.0
    assert not keeper.is_due(1)
    clock.now += 2.0
    assert keeper.is_due(1)
    kept = save_behind(keeper)
    assert isinstance(kept, Kept)
    assert kept.cadence.startswith("every ")
    assert "a save costs" in kept.cadence
    interval = cadence.interval_seconds
    assert 1.0 <= interval < 3600.0
    clock.now += interval - 0.5
    assert not keeper.is_due(2)
    clock.now += 1.0
    assert keeper.is_due(2)
    assert not keeper.is_due(1)  # that very step is saved


def test_a_run_that_is_lost_often_saves_often(tmp_path: Path, clock: Clock) -> None:
    often, seldom = AutoCadence(), AutoCadence()
    for _ in range(10):
        often.ran(600.0)
        often.failed()
        seldom.ran(6e5)
        seldom.failed()
    intervals = []
    for number, cadence in enumerate((often, seldom)):
        keeper = make_keeper(tmp_path / str(number), AutoCadence.from_text(cadence.to_text()))
        save_behind(keeper)
        intervals.append(keeper._interval_seconds)
    assert intervals[0] < intervals[1]


def test_what_is_waited_for_is_stored_as_it_is_unless_it_travels(tmp_path: Path) -> None:
    exponents = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    sizes = {}
    for travels in (False, True):
        store = LocalStore(tmp_path / str(travels))
        keeper = Keeper(store, epoch=1, cadence=AutoCadence(), keep=3, lineage={}, travels=travels)
        (kept,) = keeper.finish({"model": {"w": exponents.copy()}}, 7, {})
        assert isinstance(kept, Kept)
        sizes[travels] = kept.size_bytes
    assert sizes[False] > exponents.nbytes
    assert sizes[True] < 0.9 * exponents.nbytes
