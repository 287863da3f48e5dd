"""In order of arrival, of the part that is wanted."""

from __future__ import annotations

import math
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.errors import UsageError
from wattline.twin.traces import Trace, read_trace

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
arrivals = st.lists(st.integers(0, 10 * 86400), min_size=1, max_size=40)


def read(offsets: list[int], **window: float) -> Trace:
    rows = [
        f"{(EPOCH + timedelta(seconds=offset)).isoformat()},{1 + line},1,x"
        for line, offset in enumerate(offsets)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text("\n".join(["timestamp,duration,num_gpus,cluster", *rows]))
        return read_trace(path, **window)  # type: ignore[arg-type]


@given(arrivals)
def test_jobs_come_in_order_of_arrival_and_else_of_the_file(offsets: list[int]) -> None:
    trace = read(offsets)

    first = min(offsets)
    expected = sorted((offset - first, line + 1.0) for line, offset in enumerate(offsets))
    assert [(job.arrives_seconds, job.work_seconds) for job in trace.jobs] == expected
    assert len({job.name for job in trace.jobs}) == len(offsets)


@given(arrivals)
def test_jobs_out_of_order_are_counted(offsets: list[int]) -> None:
    late = sum(offset < max(offsets[: line + 1]) for line, offset in enumerate(offsets))

    assert read(offsets).unsorted == late


@given(arrivals, st.floats(0.01, 100))
def test_the_arrival_scale_divides_every_gap(offsets: list[int], scale: float) -> None:
    plain, scaled = read(offsets).jobs, read(offsets, arrival_scale=scale).jobs

    assert [job.arrives_seconds for job in scaled] == [job.arrives_seconds / scale for job in plain]
    assert [job.work_seconds for job in scaled] == [job.work_seconds for job in plain]


@given(arrivals, st.integers(0, 9), st.integers(1, 50))
def test_every_good_job_is_kept_skipped_or_left_out(offsets: list[int], days: int, most: int) -> None:
    offsets = [*offsets, min(offsets) + 10 * 86400]
    trace = read(offsets, skip_days=days, most_jobs=most)

    begins = min(offsets) + days * 86400
    wanted = sorted(offset for offset in offsets if offset >= begins)
    assert [job.arrives_seconds for job in trace.jobs] == [at - wanted[0] for at in wanted[:most]]
    assert trace.skipped == len(offsets) - len(wanted)
    assert len(trace.jobs) + trace.skipped + trace.left_out == len(offsets)


def test_a_job_exactly_at_the_end_of_the_skipped_days_is_kept() -> None:
    trace = read([0, 86399, 86400, 86401], skip_days=1)

    assert [job.arrives_seconds for job in trace.jobs] == [0.0, 1.0]


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_an_arrival_scale_is_finite_and_above_zero(scale: float) -> None:
    with pytest.raises(UsageError, match="arrival scale: a finite number above 0"):
        read([0], arrival_scale=scale)


def test_an_arrival_scale_that_leaves_no_finite_time_is_refused() -> None:
    with pytest.raises(UsageError, match="beyond all times"):
        read([0, 86400], arrival_scale=1e-308)


@pytest.mark.parametrize("days", [-1.0, math.nan, math.inf])
def test_days_to_skip_are_finite_and_not_negative(days: float) -> None:
    with pytest.raises(UsageError, match="days to skip"):
        read([0], skip_days=days)


def test_at_least_one_job_is_asked_for() -> None:
    with pytest.raises(UsageError, match="most jobs: at least 1, got 0"):
        read([0], most_jobs=0)


def test_skipping_everything_says_how_long_the_trace_is() -> None:
    with pytest.raises(
        UsageError, match=r"no job arrives after the first 3 days; the last one does after 1\.50"
    ):
        read([0, 129_600], skip_days=3)
