"""The benchmark of ramps in short: every feed keeps to its ramp, and without one the burst shows."""

from __future__ import annotations

from bench.ramps import burst, ramped

from wattline.spec import read_facility


def test_a_burst_on_three_sites_keeps_to_every_ramp_and_loses_nobody() -> None:
    facility = read_facility("three-sites")
    free, held = (burst(ramped(facility, kept=kept), 60, 1) for kept in (False, True))
    assert held.report.jobs.completed == free.report.jobs.completed == 60
    feeds = held.report.feeds
    assert len(feeds) == 6
    for name, feed in feeds.items():
        assert (feed.worst_ramp_kw_per_minute or 0.0) <= (feed.ramp_kw_per_minute or 0.0), name
    worst = max(feed.worst_ramp_kw_per_minute or 0.0 for feed in free.report.feeds.values())
    assert worst > 50.0
    assert max(held.waits_seconds) < 600.0
