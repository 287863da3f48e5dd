"""The public traces, as they were published."""

from __future__ import annotations

import gzip
import math
import time
from collections import Counter
from pathlib import Path

import pytest

from shared_data import shared_data
from wattline.twin.traces import read_trace


def test_philly_holds_every_job_in_order_of_submission() -> None:
    trace = read_trace(shared_data("jobs/philly.csv.gz"))

    assert (trace.name, trace.kind) == ("philly", "philly")
    assert len(trace.jobs) == 54_831
    assert (trace.refused, trace.refused_jobs, trace.unsorted, trace.skipped) == ((), 0, 0, 0)
    first = trace.jobs[0]
    assert (first.name, first.gpus, first.work_seconds, first.project) == ("philly-2", 8, 2240194.0, "7f04ca")


def test_philly_without_its_first_twenty_days() -> None:
    trace = read_trace(shared_data("jobs/philly.csv.gz"), skip_days=20)

    assert len(trace.jobs) == 54_760
    assert trace.skipped == 54_831 - 54_760
    assert trace.jobs[0].arrives_seconds == 0.0


def test_philly_keeps_the_gpu_seconds_that_the_file_states() -> None:
    path = shared_data("jobs/philly.csv.gz")
    with gzip.open(path, "rt") as lines:
        next(lines)
        stated = sum(float(line.split(",")[3]) for line in lines)

    assert sum(job.gpus * job.work_seconds for job in read_trace(path).jobs) == pytest.approx(stated)


def test_reading_philly_takes_about_as_long_as_it_has_lines() -> None:
    path = shared_data("jobs/philly.csv.gz")
    began = time.process_time()
    trace = read_trace(path)
    # Ten times slower than it is: this finds a reader gone quadratic, not a busy machine.
    assert len(trace.jobs) / (time.process_time() - began) > 25_000


@pytest.mark.parametrize("number", range(1, 7))
def test_every_job_of_the_pollux_workloads_has_a_run_time(number: int) -> None:
    trace = read_trace(shared_data(f"jobs/pollux-workload-{number}.csv.gz"))

    assert trace.kind == "pollux"
    assert len(trace.jobs) == 160
    assert trace.refused == ()
    assert all(job.name.startswith(f"{job.application}-") for job in trace.jobs)


def test_run_times_of_pollux_jobs_are_what_its_simulator_gives() -> None:
    """Epochs of progress over goodput, worked out apart from this code; a third of a day for ImageNet."""
    known = {
        ("bert", 6, 384): 3093,
        ("cifar10", 16, 4096): 479,
        ("deepspeech2", 12, 640): 2480,
        ("imagenet", 24, 3200): 31805,
        ("ncf", 1, 32768): 46,
        ("yolov3", 4, 64): 14100,
    }
    found = {
        (job.application, job.gpus, job.batch_size): job.work_seconds
        for number in range(1, 7)
        for job in read_trace(shared_data(f"jobs/pollux-workload-{number}.csv.gz")).jobs
    }

    assert {key: round(found[key]) for key in known} == known


@pytest.mark.parametrize(
    ("cluster", "taken", "refused"),
    [("103959", 861, 125), ("11cb48", 1819, 181), ("6214e9", 1985, 15), ("b436b2", 1874, 126)],
)
def test_gavel_jobs_without_a_throughput_are_counted(cluster: str, taken: int, refused: int) -> None:
    trace = read_trace(shared_data(f"jobs/gavel-{cluster}.trace.gz"))

    assert (trace.kind, len(trace.jobs)) == ("gavel", taken)
    assert trace.refused_by_rule == {"no throughput on V100 for this job type and scale factor": refused}
    assert all(math.isfinite(job.work_seconds) for job in trace.jobs)


def test_gavel_jobs_run_for_their_steps_over_the_measured_rate() -> None:
    job = read_trace(shared_data("jobs/gavel-103959.trace.gz")).jobs[0]

    assert (job.application, job.batch_size, job.gpus) == ("Transformer", 128, 1)
    assert job.work_seconds == pytest.approx(5635991 / 5.44610521981264)


def test_a_plain_copy_reads_like_the_packed_file(tmp_path: Path) -> None:
    packed = shared_data("jobs/philly.csv.gz")
    # The name says gzip and the bytes do not: the bytes count.
    plain = tmp_path / "philly.csv.gz"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))

    assert list(read_trace(plain).jobs) == list(read_trace(packed).jobs)


def test_gpu_counts_of_philly_are_those_of_the_file() -> None:
    counts = Counter(job.gpus for job in read_trace(shared_data("jobs/philly.csv.gz")).jobs)

    assert counts == {1: 51_971, 2: 951, 4: 1_065, 8: 743, 12: 7, 16: 66, 24: 4, 32: 24}
