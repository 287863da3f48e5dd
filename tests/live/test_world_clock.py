"""The live world's clock: the wall clock may jump, time may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from building import a_facility
from wattline.actuators import EmulatedActuator
from wattline.engines import LocalEngine
from wattline.live import Home, LiveWorld, Meters, world
from wattline.release import KeptGoods
from wattline.state import State, Ticked
from wattline.store import ObjectStore
from wattline.telemetry import EmulatedFacility


class Clock:
    """Two clocks, as a machine has them."""

    def __init__(self, wall: float) -> None:
        self.wall, self.ticks = wall, 50.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.ticks


def a_live_world(tmp_path: Path, seen_at: float) -> LiveWorld:
    state = State(a_facility())
    state.fold([Ticked(at=seen_at)])
    emulated = EmulatedFacility(state.plant.facility, (), 0, seen_at)
    engine, home = LocalEngine(), Home(tmp_path).ensure()
    return LiveWorld(
        home=home,
        state=state,
        engine=engine,
        actuator=EmulatedActuator(emulated),
        meters=Meters(emulated, engine, None),
        goods=KeptGoods(ObjectStore(home.objects)),
        requests=list,
    )


@pytest.mark.parametrize("jump", [-7200.0, 7200.0, 1e9])
def test_a_jump_of_the_wall_clock_is_no_jump_of_time(
    jump: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(wall=1_700_000_000.0)
    monkeypatch.setattr(world, "time", clock)
    live = a_live_world(tmp_path, seen_at=0.0)
    assert live.now() == 1_700_000_000.0
    clock.wall += jump
    clock.ticks += 5.0
    assert live.now() == 1_700_000_005.0
    live.close()


def test_time_goes_on_from_what_the_journal_has_seen_where_the_wall_clock_is_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "time", Clock(wall=1_000.0))
    live = a_live_world(tmp_path, seen_at=1_700_000_000.0)
    assert live.now() == 1_700_000_000.0
    live.close()
