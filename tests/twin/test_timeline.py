from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.recording import a_layout
from wattline.twin.timeline import MOST_CELLS, Column, Count, Sample, Series, Timeline

ONE = a_layout(("ashburn",), racks=1)
NOTHING = Sample(site_usd=(0.0,), site_kg=(0.0,))


def reach(timeline: Timeline, at: float, *, usd: float = 0.0, celsius: tuple[float, ...] = ()) -> None:
    if timeline.due(at):
        timeline.sample(at, Sample(site_usd=(usd,), site_kg=(0.0,), place_celsius=celsius))


def mean(series: Series, values: Column) -> float:
    return float(np.average(values, weights=series.hours))


def test_it_is_due_exactly_when_a_cell_ends() -> None:
    timeline = Timeline(100.0, ONE, step_seconds=10.0)
    assert not timeline.due(109.999)
    assert timeline.due(110.0)
    timeline.sample(110.0, NOTHING)
    assert not timeline.due(110.0)


def test_a_count_is_weighted_by_how_long_it_held() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=10.0)
    timeline.note_count(Count.GPUS_BUSY, 0.0, 8)
    timeline.note_count(Count.GPUS_BUSY, 2.0, 0)
    timeline.finish(10.0, NOTHING)
    series = timeline.series()
    assert series.counts[:, Count.GPUS_BUSY].tolist() == [1.6]
    assert series.most_counts[:, Count.GPUS_BUSY].tolist() == [8.0]


def test_a_spike_between_two_samples_is_kept() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=10.0)
    timeline.note_watts(1, 3.0, 9e5)
    timeline.note_watts(1, 3.001, 1e5)
    timeline.finish(30.0, NOTHING)
    series = timeline.series()
    assert series.feed_peak_watts[:, 1].tolist() == [9e5, 1e5, 1e5]
    assert series.feed_watts[1, 1] == pytest.approx(1e5)


def test_a_cap_is_the_lowest_that_held_in_a_cell() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=10.0)
    timeline.note_cap(0, 100e3)
    timeline.note_cap(0, 640e3)
    timeline.finish(20.0, NOTHING)
    assert timeline.series().feed_cap_watts[:, 0].tolist() == [100e3, 640e3]


def test_heat_is_the_highest_that_was_noted_or_read() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=10.0)
    timeline.note_heat(0, 80.0)
    timeline.note_heat(0, 60.0)
    reach(timeline, 10.0, celsius=(70.0,))
    reach(timeline, 20.0, celsius=(50.0,))
    assert timeline.series().place_celsius[:, 0].tolist() == [80.0, 70.0]


def test_heat_that_nobody_looked_at_is_not_a_number() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=10.0)
    timeline.finish(10.0, NOTHING)
    assert math.isnan(timeline.series().place_celsius[0, 0])


def test_totals_become_rates_and_late_samples_spread_over_the_cells_they_cover() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=10.0)
    reach(timeline, 10.0, usd=1.0)
    reach(timeline, 35.0, usd=6.0)  # 0.2 USD a second since
    timeline.finish(40.0, Sample(site_usd=(8.0,), site_kg=(0.0,)))  # 0.4 a second for the last five
    per_second = timeline.series().usd_per_hour[:, 0] / 3600.0
    assert per_second.tolist() == pytest.approx([0.1, 0.2, 0.2, 0.3])


def test_what_is_spent_in_no_time_is_not_lost() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=10.0)
    timeline.sample(5.0, Sample(site_usd=(1.0,), site_kg=(0.0,)))
    timeline.sample(5.0, Sample(site_usd=(4.0,), site_kg=(0.0,)))
    timeline.finish(10.0, Sample(site_usd=(5.0,), site_kg=(0.0,)))
    series = timeline.series()
    assert float(series.usd_per_hour[:, 0] @ series.hours) == pytest.approx(5.0)


def test_the_last_cell_may_be_short() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=10.0)
    timeline.note_count(Count.JOBS_WAITING, 0.0, 3)
    timeline.finish(25.0, NOTHING)
    series = timeline.series()
    assert series.edges.tolist() == [0.0, 10.0, 20.0, 25.0]
    assert series.counts[:, Count.JOBS_WAITING].tolist() == [3.0, 3.0, 3.0]


def test_a_run_that_ends_where_it_began_has_no_cells() -> None:
    timeline = Timeline(5.0, ONE)
    timeline.finish(5.0, NOTHING)
    assert timeline.series().edges.tolist() == [5.0]


def test_noting_past_the_end_of_a_cell_is_a_mistake() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=10.0)
    with pytest.raises(AssertionError, match="sample first"):
        timeline.note_watts(0, 10.5, 1.0)


@pytest.mark.parametrize("days", [0.1, 1.0, 60.0, 3650.0])
def test_however_long_it_takes_there_are_enough_cells_and_never_too_many(days: float) -> None:
    timeline = Timeline(0.0, ONE)
    timeline.finish(days * 86400.0, NOTHING)
    cells = len(timeline.series().counts)
    assert cells <= MOST_CELLS
    assert cells >= min(MOST_CELLS // 2, math.ceil(days * 86400.0 / 15.0))


def test_the_last_short_cell_is_never_joined_with_a_long_one() -> None:
    timeline = Timeline(0.0, ONE, step_seconds=1.0)
    reach(timeline, MOST_CELLS - 1.0)
    timeline.note_count(Count.GPUS_BUSY, MOST_CELLS - 1.0, 8)
    timeline.finish(MOST_CELLS - 0.5, NOTHING)
    series = timeline.series()
    assert len(series.counts) == MOST_CELLS
    assert series.counts[-2:, Count.GPUS_BUSY].tolist() == [0.0, 8.0]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0.01, 900.0), st.integers(0, 1000)), min_size=1, max_size=60),
    st.floats(0.05, 2.0),
)
def test_joining_cells_loses_neither_time_nor_peaks_nor_money(
    changes: list[tuple[float, int]], step_seconds: float
) -> None:
    timeline = Timeline(0.0, ONE, step_seconds=step_seconds)
    at, busy_seconds, held, usd = 0.0, 0.0, 0.0, 0.0
    for gap, value in changes:
        at, busy_seconds, usd = at + gap, busy_seconds + held * gap, usd + 0.5 * gap
        reach(timeline, at, usd=usd)
        timeline.note_count(Count.GPUS_BUSY, at, value)
        timeline.note_watts(0, at, 10.0 * value)
        held = float(value)
    busy_seconds, usd, at = busy_seconds + 100.0 * held, usd + 50.0, at + 100.0
    timeline.finish(at, Sample(site_usd=(usd,), site_kg=(0.0,)))
    series = timeline.series()
    assert len(series.counts) <= MOST_CELLS
    assert series.edges[-1] == at
    assert mean(series, series.counts[:, Count.GPUS_BUSY]) * at == pytest.approx(busy_seconds, abs=1e-6)
    assert series.feed_peak_watts[:, 0].max() == 10.0 * max(value for _, value in changes)
    assert float(series.usd_per_hour[:, 0] @ series.hours) == pytest.approx(usd)
