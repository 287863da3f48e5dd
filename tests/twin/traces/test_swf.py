from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from wattline.errors import DocumentError
from wattline.twin.traces import TraceJob, read_trace

#       1 2  3 4   5 6  7  8 9   10 11 12 13 14 15 16 17 18
GOOD = "1 10 5 100 4 -1 -1 8 600 -1 1 7 3 -1 2 1 -1 -1"


def a_trace(tmp_path: Path, *rows: str, name: str = "some.swf") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(rows))
    return path


def changed(**fields: object) -> str:
    """The good line with some fields changed, by their number in the format: f4=-1."""
    row = GOOD.split()
    for number, value in fields.items():
        row[int(number[1:]) - 1] = str(value)
    return "  ".join(row)


def test_a_line_becomes_a_job_of_its_group(tmp_path: Path) -> None:
    path = a_trace(tmp_path, "; Version: 2.2", ";", "", GOOD, changed(f1=2, f2=70) + " ; late")

    trace = read_trace(path)
    assert trace.kind == "swf"
    assert list(trace.jobs) == [
        TraceJob(
            name="1", arrives_seconds=0.0, gpus=8, work_seconds=100.0, project="group-3", limit_seconds=600.0
        ),
        TraceJob(
            name="2", arrives_seconds=60.0, gpus=8, work_seconds=100.0, project="group-3", limit_seconds=600.0
        ),
    ]


def test_processors_that_were_not_requested_are_those_allocated(tmp_path: Path) -> None:
    assert read_trace(a_trace(tmp_path, changed(f8=-1))).jobs[0].gpus == 4


def test_an_unknown_requested_time_is_no_limit(tmp_path: Path) -> None:
    assert read_trace(a_trace(tmp_path, changed(f9=-1))).jobs[0].limit_seconds is None


@pytest.mark.parametrize(
    ("fields", "project"),
    [
        ({"f13": -1}, "queue-2"),
        ({"f13": -1, "f15": -1}, "user-7"),
        ({"f13": -1, "f15": -1, "f12": -1}, "default"),
        ({"f13": 0}, "group-0"),
    ],
)
def test_a_job_belongs_to_the_nearest_known_sharer(
    tmp_path: Path, fields: dict[str, int], project: str
) -> None:
    assert read_trace(a_trace(tmp_path, changed(**fields))).jobs[0].project == project


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (changed(f1=2, f4=-1), "the run time is not known"),
        (changed(f1=2, f4=-7), "the run time is negative"),
        (changed(f1=2, f4=0), "the run time is zero"),
        (changed(f1=2, f4="nan"), "the run time is not finite"),
        (changed(f1=2, f2=-1), "the arrival is negative"),
        (changed(f1=2, f2="inf"), "the arrival is not finite"),
        (changed(f1=2, f5=-1, f8=-1), "no GPU asked for"),
        (changed(f1=2, f8="x"), "requested processors is not a number"),
        ("2 10 5 100", "wrong number of columns"),
        (GOOD + " 19", "wrong number of columns"),
        (GOOD, "the name was used before"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_with_its_rule(tmp_path: Path, row: str, rule: str) -> None:
    trace = read_trace(a_trace(tmp_path, "; header", GOOD, row))

    assert trace.refused_by_rule == {rule: 1}
    assert trace.refused[0].line == 3
    assert len(trace.jobs) == 1


def test_the_format_is_known_without_its_name_and_without_a_header(tmp_path: Path) -> None:
    assert read_trace(a_trace(tmp_path, GOOD, name="log.txt")).kind == "swf"


def test_a_packed_trace_with_comments_in_another_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "KIT.swf.gz"
    path.write_bytes(gzip.compress("; Universität\n".encode("latin-1") + GOOD.encode()))

    trace = read_trace(path)
    assert (trace.name, len(trace.jobs)) == ("KIT", 1)


def test_comments_alone_are_no_trace(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="this swf trace has no jobs"):
        read_trace(a_trace(tmp_path, "; nothing", "; here"))
