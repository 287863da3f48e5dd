from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from wattline.spec.policy import Policy
from wattline.state import Decision, Snapshot
from wattline.twin.replaying import read_rules
from wattline.twin.run import run
from wattline.twin.scenario import read_stage, setting_of

SETTLED, SEEN = 100, 200  # turns: by then all that is made once is there, and enough has happened since


@pytest.fixture
def _kept_garbage() -> Iterator[None]:
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield
    gc.set_debug(0)
    gc.garbage.clear()


@pytest.mark.usefixtures("_kept_garbage")
@pytest.mark.parametrize("policy", ["default", "power-blind"])
def test_turns_leave_nothing_for_the_collector_which_is_off_meanwhile(policy: str) -> None:
    setting = setting_of(read_stage("pump-trip"), read_rules(policy))
    enabled: list[bool] = []
    left: list[str] = []

    def decide(snapshot: Snapshot, rules: Policy) -> Decision:
        enabled.append(gc.isenabled())
        if len(enabled) in (SETTLED, SEEN):
            gc.collect()
            left[:] = [type(each).__name__ for each in gc.garbage]
            gc.garbage.clear()
        return setting.decide(snapshot, rules)

    run(replace(setting, decide=decide))

    assert len(enabled) > SEEN
    assert left == []
    assert not any(enabled)
    assert gc.isenabled()
