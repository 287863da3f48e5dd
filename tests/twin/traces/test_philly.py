from __future__ import annotations

from pathlib import Path

import pytest

from wattline.errors import DocumentError
from wattline.twin.traces import Flawed, TraceJob, read_trace

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster"


def a_trace(tmp_path: Path, *rows: str, header: str = HEADER) -> Path:
    path = tmp_path / "some.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_a_line_becomes_a_job(tmp_path: Path) -> None:
    path = a_trace(tmp_path, "2017-10-01 00:00:10,60.5,8,484.0,7f04ca", "2017-10-01 00:01:00,1,2,2,6214e9")

    assert list(read_trace(path).jobs) == [
        TraceJob(name="philly-2", arrives_seconds=0.0, gpus=8, work_seconds=60.5, project="7f04ca"),
        TraceJob(name="philly-3", arrives_seconds=50.0, gpus=2, work_seconds=1.0, project="6214e9"),
    ]


def test_two_lines_alike_are_two_jobs(tmp_path: Path) -> None:
    row = "2017-10-01 00:00:10,60,8,480,a"
    trace = read_trace(a_trace(tmp_path, row, row, row))

    assert [job.name for job in trace.jobs] == ["philly-2", "philly-3", "philly-4"]
    assert trace.refused_jobs == 0


@pytest.mark.parametrize(
    ("row", "rule", "value"),
    [
        ("2017-10-01 00:00:10,-5,8,1,a", "the run time is negative", "-5.0"),
        ("2017-10-01 00:00:10,0,8,1,a", "the run time is zero", "0.0"),
        ("2017-10-01 00:00:10,nan,8,1,a", "the run time is not finite", "nan"),
        ("2017-10-01 00:00:10,inf,8,1,a", "the run time is not finite", "inf"),
        ("2017-10-01 00:00:10,1e300,8,1,a", "the run time is beyond all times", "1e+300"),
        ("2017-10-01 00:00:10,long,8,1,a", "duration is not a number", "long"),
        ("2017-10-01 00:00:10,,8,1,a", "duration is not a number", ""),
        ("2017-10-01 00:00:10,5,0,1,a", "no GPU asked for", "0"),
        ("2017-10-01 00:00:10,5,-1,1,a", "no GPU asked for", "-1"),
        ("2017-10-01 00:00:10,5,1.5,1,a", "num_gpus is not a whole number", "1.5"),
        ("2017-10-01 00:00:10,5,nan,1,a", "num_gpus is not a whole number", "nan"),
        ("2017-10-01 00:00:10,5,two,1,a", "num_gpus is not a number", "two"),
        ("2017-10-01 00:00:10,5,9999999,1,a", "more GPUs than any facility has", "9999999"),
        ("None,5,1,1,a", "timestamp is not a time", "None"),
        ("1917-10-01 00:00:10,5,1,1,a", "the arrival is negative", "-1648943990.0"),
        ("2017-10-01 00:00:10,5,1,1", "wrong number of columns", "4 instead of 5"),
        ("2017-10-01 00:00:10,5,1,1,a,b", "wrong number of columns", "6 instead of 5"),
        (
            "2017-10-01 00:00:10,5,1,1,a\x1b[31m",
            "the project is not printable, or longer than 200 characters",
            "a\\u001b[31m",
        ),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_with_its_rule(
    tmp_path: Path, row: str, rule: str, value: str
) -> None:
    good = "2017-10-01 00:00:10,60,8,480,a"
    trace = read_trace(a_trace(tmp_path, good, row, good))

    assert trace.refused == (Flawed(line=3, rule=rule, value=value),)
    assert trace.refused_by_rule == {rule: 1}
    assert [job.name for job in trace.jobs] == ["philly-2", "philly-4"]


def test_of_many_refused_lines_all_are_counted_and_the_first_few_kept(tmp_path: Path) -> None:
    rows = ["2017-10-01 00:00:10,60,1,60,a"] + 1000 * ["2017-10-01 00:00:10,60,0,0,a"] + ["nonsense"]
    trace = read_trace(a_trace(tmp_path, *rows))

    assert trace.refused_jobs == 1001
    assert trace.refused_by_rule == {"no GPU asked for": 1000, "wrong number of columns": 1}
    assert [flawed.line for flawed in trace.refused] == [3, 4, 5, 6, 7, 1003]


def test_columns_may_stand_in_any_order_with_others_between(tmp_path: Path) -> None:
    path = a_trace(
        tmp_path, "x,4.0,,2017-10-01T00:00:10+00:00,60", header="User,num_gpus,,Timestamp,DURATION"
    )

    assert list(read_trace(path).jobs) == [
        TraceJob(name="philly-2", arrives_seconds=0.0, gpus=4, work_seconds=60.0)
    ]


def test_quoted_fields_line_ends_of_windows_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_bytes(
        b'\xef\xbb\xbf"timestamp",duration,num_gpus,cluster\r\n"2017-10-01 00:00:10",60,1,"a,b"\r\n'
    )

    assert [job.project for job in read_trace(path).jobs] == ["a,b"]


def test_a_missing_column_is_named_with_what_stands_nearest(tmp_path: Path) -> None:
    path = a_trace(tmp_path, header="timestamp,duration,numgpus,gpu_time,cluster")

    with pytest.raises(DocumentError) as raised:
        read_trace(path)
    (problem,) = raised.value.problems
    assert (problem.file, problem.line, problem.column) == (str(path), 1, 20)
    assert (problem.field, problem.message, problem.value) == (
        "num_gpus",
        "this column is missing",
        "'numgpus'",
    )
    assert problem.allowed == "timestamp, duration, num_gpus, gpu_time, cluster"
    assert problem.nearest == "num_gpus"


def test_all_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as raised:
        read_trace(a_trace(tmp_path, header="gpu_time,cluster"))

    assert [problem.field for problem in raised.value.problems] == ["timestamp", "duration", "num_gpus"]
    assert {problem.nearest for problem in raised.value.problems} == {None}


def test_a_trace_without_a_usable_job_says_why(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as raised:
        read_trace(a_trace(tmp_path, "2017-10-01 00:00:10,5,0,1,a", "2017-10-01 00:00:10,x,1,1,a"))

    said = str(raised.value)
    assert "no job of this philly trace can be used" in said
    assert "1 × no GPU asked for" in said
    assert ":3:1: duration is not a number, got x" in said


def test_a_header_alone_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="this philly trace has no jobs"):
        read_trace(a_trace(tmp_path))
