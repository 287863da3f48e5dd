"""When is a run's state saved, where nobody said how often?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from wattline.checkpoint import AutoCadence, LocalStore
from wattline.train import keeper as keeping
from wattline.train.keeper import Keeper, Kept


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


def test_the_first_save_comes_soon_and_its_cost_decides_when_the_next_is_due(
    tmp_path: Path, clock: Clock
) -> None:
    cadence = AutoCadence()
    keeper = make_keeper(tmp_path, cadence)
    clock.now += 29.0
    assert not keeper.is_due(1)
    clock.now += 2.0
    assert keeper.is_due(1)
    (kept,) = keeper.finish({"model": {"w": np.ones(3)}}, 1, {"loss": 0.5})
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
        keeper.finish({"model": {"w": np.ones(3)}}, 1, {"loss": 0.5})
        intervals.append(keeper._interval_seconds)
    assert intervals[0] < intervals[1]
