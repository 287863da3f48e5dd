"""The readings of many nodes take a small part of a processor; here of fewer, for a shorter time."""

from __future__ import annotations

from bench.readings import EVERY_SECONDS, measure


def test_what_readings_cost_is_far_below_a_core_and_all_that_moved_is_told() -> None:
    nodes, periods = 400, 6
    costs, running = measure(nodes, periods)
    assert running == nodes // 2
    assert costs.readings >= periods * nodes * 16
    assert costs.told >= 0.98 * costs.readings
    # A twenty-fifth of the nodes of the full size, which must stay below one core.
    assert costs.total_seconds < periods * EVERY_SECONDS / 4
    assert costs.megabytes[-1] - costs.megabytes[2] < 50
