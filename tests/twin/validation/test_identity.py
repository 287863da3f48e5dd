"""Check 9: what the twin decides is what would be decided live, and a seed decides everything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from bench.loop_checks import Recorded

from building import adopted
from twin.validation.twins import HOUR, a_setting, build, default_policy, some_faults, some_work, two_sites
from wattline.control import (
    Documents,
    decode_step,
    encode_decision,
    replay,
    step,
)
from wattline.policy import decide
from wattline.state import Snapshot, State, dump_state, load_state
from wattline.twin.run import Setting, drive, metered, run

FACILITY = metered(two_sites())
TESTS = Path(__file__).parents[2]


def a_rough_run(seed: int) -> Setting:
    chance = Random(seed)
    work, faults = some_work(chance), some_faults(chance)
    return a_setting(two_sites(), work, faults=faults, seed=seed, until_seconds=6 * HOUR)


@pytest.fixture(scope="module", params=range(3), ids=lambda seed: f"seed {seed}")
def kept(request: pytest.FixtureRequest) -> list[bytes]:
    found: list[bytes] = []
    run(a_rough_run(request.param), keep=found.append)
    return [data for data in found if decode_step(data).decided]


def test_the_runs_are_rough_enough(kept: list[bytes]) -> None:
    done = Counter(action.kind.value for data in kept for action in decode_step(data).decision.actions)
    assert len(kept) > 80
    assert done["start"] > 30
    assert done["refuse"] > 5


def test_a_live_loop_that_is_told_the_same_writes_the_same_bytes(kept: list[bytes]) -> None:
    world, state = Recorded([decode_step(data) for data in kept]), State(FACILITY)
    for _ in kept:
        step(world, state, default_policy(), world)
    assert world.written == kept


@pytest.mark.parametrize("seed", range(3))
def test_replay_of_a_run_finds_no_drift(seed: int) -> None:
    """The twin adopts no documents by itself: here its world says first which ones are in force."""
    setting = a_rough_run(seed)
    twin = build(setting)
    twin.world._pending.append(adopted(setting.begins_at))
    drive(twin.world, twin.state, setting, twin.journal)
    documents = Documents(facility=lambda _: FACILITY, policy=lambda _: default_policy())
    assert list(replay(enumerate(twin.records), documents)) == []


def test_a_process_that_died_and_came_back_decides_the_same(kept: list[bytes]) -> None:
    """The state is written out and read in again on the way, and events come one by one."""
    state = State(FACILITY)
    for number, record in enumerate(map(decode_step, kept)):
        if number % 50 == 49:
            state = load_state(FACILITY, dump_state(state))
        for event in record.events:
            state.fold([event])
        assert record.digest in ("", state.digest())
        derived = decide(Snapshot(state, record.decision.at), default_policy())
        assert encode_decision(derived) == encode_decision(record.decision)
        state.settle(record.decision)


def test_the_same_seed_gives_the_same_digest_in_another_process() -> None:
    code = (
        "from twin.validation.test_identity import a_rough_run\n"
        "from wattline.twin.run import run\n"
        "print(run(a_rough_run(1)).report.digest)"
    )
    here = run(a_rough_run(1)).report.digest
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": str(TESTS), "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    ]
    assert told == [here, here]


def test_another_seed_gives_another_digest() -> None:
    assert run(a_rough_run(1)).report.digest != run(a_rough_run(2)).report.digest
