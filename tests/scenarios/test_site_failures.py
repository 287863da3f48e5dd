"""A hub and its sites under everything that can fail; the seed in a test's name replays it, as does
`python -m bench.site_failures --seed N`. `make soak` plays ten thousand."""

from __future__ import annotations

from collections import Counter

import pytest
from bench.site_failures import play
from bench.site_promises import run
from bench.site_simulation import Simulation

from wattline.control.sites import Timing

SEEDS_AT_ONCE = 25


@pytest.mark.parametrize("first", range(0, 200, SEEDS_AT_ONCE))
def test_whatever_fails_the_promises_hold(first: int) -> None:
    for seed in range(first, first + SEEDS_AT_ONCE):
        _, trouble, _, _ = play(seed)
        assert not trouble, f"seed {seed}: {trouble}"


def test_the_seeds_show_every_failure_and_every_standing() -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        seen += play(seed)[2]
    wanted = {"hub crashes", "agent crashes", "supervisor crashes", "sites destroyed"}
    wanted |= {"primary", "local_only", "regional_fallback", "attempts lost", "attempts paused"}
    assert wanted <= seen.keys(), seen


def test_a_clock_beyond_the_bound_is_found_out_and_its_results_do_not_count() -> None:
    """Two attempts may then live at once; the fences let one of them publish, and a person is asked."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        simulation = Simulation(10 * seed + 9, wild=True)
        run(simulation)
        seen += simulation.seen
    assert seen["seconds run twice"], seen


def test_a_hub_that_waits_too_short_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation can fail: it is worth nothing otherwise."""
    monkeypatch.setattr(Timing, "surely_over_seconds", 10.0)
    troubles = [trouble for seed in range(150) if (trouble := play(seed)[1])]
    assert any("no job runs twice" in trouble for trouble in troubles), troubles
