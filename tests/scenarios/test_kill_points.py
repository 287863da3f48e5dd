"""Wattline killed at random moments, also while it resumes; the seed in a test's name reproduces its moments.

`bench/kill_points.py` does the same hundreds of times.
"""

from __future__ import annotations

import random
import subprocess

import pytest

from cli.running import Desk, assert_nothing_is_left, kill, model_of


@pytest.mark.parametrize("seed", range(4))
def test_any_moment_is_good_enough_to_be_killed_at(desk: Desk, seed: int) -> None:
    chance = random.Random(seed)
    desk.training(steps=12, seconds=0.1)
    for _ in range(chance.choice((1, 2))):
        process = desk.start("--resume")
        try:
            process.wait(timeout=chance.uniform(0.5, 5.0))
        except subprocess.TimeoutExpired:
            kill(process)
        else:
            process.communicate()
    ran = desk.run("--resume")
    assert (ran.code, ran.json["status"]) == (0, "succeeded"), ran.err
    assert model_of(ran.json) == desk.by_hand()
    assert len(desk.state().runs) == 1
    assert_nothing_is_left(desk)
