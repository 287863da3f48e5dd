from __future__ import annotations

import os
from pathlib import Path

import pytest

from wattline.errors import DocumentError
from wattline.twin.traces import read_trace


@pytest.mark.parametrize(
    "text", ["a,b,c\n1,2,3\n", "hello world\n", "JobID,Submit\n", "1 2 3\n", "a\tb\tc\n", "timestamp\n"]
)
def test_an_unknown_format_is_shown_with_the_formats_that_are_known(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some.csv"
    path.write_text("\n" + text)

    with pytest.raises(DocumentError, match="this is no trace of a known format") as raised:
        read_trace(path)
    (problem,) = raised.value.problems
    assert (problem.line, problem.value) == (2, repr(text.splitlines()[0].replace("\t", "\\u0009")))
    for known in ("Philly", "Pollux", "Gavel", "Standard Workload Format", "sacct", "journal"):
        assert known in (problem.allowed or "")


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("\n \n")

    with pytest.raises(DocumentError, match="the file is empty"):
        read_trace(path)


def test_bytes_of_no_text_at_all_are_told(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_bytes(bytes(range(256)) * 100)

    with pytest.raises(DocumentError, match="binary data"):
        read_trace(path)


def test_a_file_without_permission_is_told(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = tmp_path / "some.csv"
    path.write_text("timestamp,duration,num_gpus\n")
    path.chmod(0)

    with pytest.raises(Exception, match="cannot be read"):
        read_trace(path)


def test_a_path_may_be_text(tmp_path: Path) -> None:
    path = tmp_path / "my.trace.csv.gz"
    path.write_text("timestamp,duration,num_gpus\n2020-01-01,5,1\n")

    assert read_trace(str(path)).name == "my.trace"
