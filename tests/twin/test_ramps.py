"""Ramps and swings in the twin, where loads are what they are and not what was promised."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from building import a_device, a_facility, a_policy, a_site
from wattline.facility import Facility
from wattline.state import JobRequest
from wattline.twin.run import BEGINS_AT, Setting, run
from wattline.twin.truth.ramp import RampMeter
from wattline.twin.workload import Arrival

Coming = list[tuple[float, int, float, float]]  # after how long, GPUs, seconds, utilisation


def a_hall(ramp_watts_per_minute: float, swing_watts: float | None = None) -> Facility:
    site = a_site(nodes=6, gpus=4, device=a_device(idle_watts=50.0), feeds_watts=(1e6, 1e6), loop_watts=1e6)
    supplies = tuple(
        replace(supply, ramp_watts_per_minute=ramp_watts_per_minute, swing_watts=swing_watts)
        for supply in site.supplies
    )
    racks = tuple(
        replace(rack, nodes=tuple(replace(node, other_watts=400.0) for node in rack.nodes))
        for rack in site.racks
    )
    return a_facility(replace(site, supplies=supplies, racks=racks))


def arrivals(coming: Coming, communicating_watts: float | None = None) -> list[Arrival]:
    at, found = BEGINS_AT, []
    for number, (gap, gpus, seconds, utilisation) in enumerate(coming):
        at += gap
        request = JobRequest(
            job=f"r{number}/train",
            run=f"r{number}",
            gpus=gpus,
            checkpoints=True,
            communicating_watts=communicating_watts,
        )
        found.append(Arrival(at, request, seconds, utilisation))
    return found


def a_setting(facility: Facility, coming: list[Arrival]) -> Setting:
    return Setting(
        name="test", facility=facility, policy=a_policy(), arrivals=lambda: iter(coming), exact=True
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from((0.0, 0.0, 0.7, 13.0, 61.0)),
            st.integers(1, 16),
            st.floats(5.0, 400.0),
            st.floats(0.2, 1.0),
        ),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from((900.0, 1500.0, 4000.0)),
)
def test_no_feed_ever_rises_quicker_than_its_ramp_whatever_comes(coming: Coming, ramp: float) -> None:
    report = run(a_setting(a_hall(ramp), arrivals(coming))).report
    assert report.jobs.completed == report.jobs.submitted
    for feed in report.feeds.values():
        assert feed.worst_ramp_kw_per_minute is not None
        assert feed.worst_ramp_kw_per_minute <= ramp / 1000.0 + 1e-9


def test_a_burst_without_a_limit_that_binds_rises_all_at_once() -> None:
    burst = arrivals([(0.0, 4, 600.0, 1.0)] * 6)
    free, held = (run(a_setting(a_hall(ramp), burst)).report for ramp in (1e9, 2000.0))
    # Half of each feed: 24 GPUs that draw 350 W more than idle, and what the boxes around them add.
    assert free.feeds["zurich/feed-a"].worst_ramp_kw_per_minute == pytest.approx(4.92, abs=0.5)
    assert free.completion_minutes.p95 == 10.0
    assert held.completion_minutes.p95 is not None
    assert held.completion_minutes.p95 > 11.0


def test_the_report_shows_the_worst_swing_of_each_feed_that_minds() -> None:
    swinging = arrivals([(0.0, 4, 600.0, 1.0)] * 6, communicating_watts=100.0)
    report = run(a_setting(a_hall(1e9, 1300.0), swinging)).report
    feed = report.feeds["zurich/feed-a"]
    # One job swings 4 × 300 W, half of it on each feed: two of them at a time.
    assert feed.worst_swing_kw == pytest.approx(1.2)
    assert feed.swing_kw == 1.3
    assert report.jobs.completed == 6


def test_a_facility_that_limits_nothing_reports_nothing_of_it() -> None:
    report = run(a_setting(a_facility(a_site()), arrivals([(0.0, 1, 60.0, 1.0)]))).report
    assert report.feeds == {}


@pytest.mark.parametrize(
    ("steps", "worst"),
    [
        ([(10, 5.0)], 5.0),
        ([(10, 5.0), (69.9, 9.0)], 9.0),
        ([(10, 5.0), (70, 9.0)], 5.0),
        ([(10, 5.0), (20, 0.0), (30, 4.0)], 5.0),
        ([(10, 5.0), (20, 1.0), (30, 7.0)], 7.0),
        ([(10, 5.0), (100, 1.0), (170, 7.0)], 6.0),
        ([(10, 5.0), (100, 0.0), (100, 7.0)], 5.0),  # for no time at all
        ([], 0.0),
    ],
)
def test_a_rise_is_from_the_lowest_of_the_minute_before(
    steps: list[tuple[float, float]], worst: float
) -> None:
    meter = RampMeter(0.0, 0.0)
    for at, watts in steps:
        meter.note(at, watts)
    assert meter.finish() == worst
