from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from wattline.twin.traces import TraceJob, read_trace


@pytest.fixture(scope="module")
def long_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.csv"
    rows = (f"2020-01-01 {n // 3600:02}:{n // 60 % 60:02}:{n % 60:02},{n + 1},1,x" for n in range(10_000))
    path.write_text("\n".join(["timestamp,duration,num_gpus,cluster", *rows]))
    return path


def test_jobs_are_a_sequence_whichever_way_they_are_asked_for(long_trace: Path) -> None:
    jobs = read_trace(long_trace).jobs
    all_jobs = list(jobs)

    assert len(jobs) == len(all_jobs) == 10_000
    assert [jobs[0], jobs[5000], jobs[-1]] == [all_jobs[0], all_jobs[5000], all_jobs[-1]]
    assert jobs[4090:4100] == tuple(all_jobs[4090:4100])
    assert jobs[::-2500] == tuple(all_jobs[::-2500])
    assert list(reversed(jobs)) == all_jobs[::-1]
    assert all_jobs[17] in jobs
    with pytest.raises(IndexError):
        jobs[10_000]


def test_numbers_are_plain_ones_that_any_encoder_knows(long_trace: Path) -> None:
    job = read_trace(long_trace).jobs[3]

    assert [type(value) for value in (job.arrives_seconds, job.work_seconds, job.cpus)] == [float] * 3
    assert type(job.gpus) is int


def test_a_trace_takes_less_than_a_hundred_bytes_a_job(long_trace: Path) -> None:
    read_trace(long_trace)  # what is loaded once does not count
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        trace = read_trace(long_trace)
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()

    assert held / len(trace.jobs) < 100


def test_a_job_cannot_be_changed() -> None:
    job = TraceJob(name="a", arrives_seconds=0.0, gpus=1, work_seconds=1.0)

    with pytest.raises(AttributeError):
        job.gpus = 2  # type: ignore[misc]
