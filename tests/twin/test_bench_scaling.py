"""Nodes that sleep through a quiet day save most of what it takes, and most who come find one awake."""

from __future__ import annotations

from bench.scaling import play, policies

from shared_data import shared_data
from wattline.twin.report import ScalingReport


def test_a_quiet_day_takes_less_than_half_and_most_find_a_node_awake() -> None:
    shared_data("jobs/philly.csv.gz")
    by_name = policies()
    awake, sleepy = play(by_name["all awake"], 0.5), play(by_name["warm for 90 %"], 0.5)
    assert sleepy.energy_kwh < 0.5 * awake.energy_kwh
    assert isinstance(sleepy.scaling, ScalingReport)
    assert sleepy.scaling.hit_rate is not None
    assert sleepy.scaling.hit_rate > 0.6  # half a day begins with nothing known of who comes
    assert sleepy.wait_minutes.mean is not None
    assert sleepy.wait_minutes.mean < 2.0
