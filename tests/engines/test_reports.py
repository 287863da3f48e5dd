"""Reports are told once each, in order, whatever the file looks like while it is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from wattline.engines import reports
from wattline.engines.reports import ReportTail

LINES = st.one_of(
    st.integers().map(lambda step: json.dumps({"kind": "step", "step": step}).encode()),
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
)


def test_no_file_is_no_report(tmp_path: Path) -> None:
    assert ReportTail(tmp_path / "reports.jsonl").read() == ([], False)


@given(lines=st.lists(LINES, max_size=8), cuts=st.lists(st.integers(0, 400), max_size=6))
def test_however_it_is_written_every_whole_line_is_told_once(lines: list[bytes], cuts: list[int]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    with TemporaryDirectory() as place:
        path = Path(place) / "reports.jsonl"
        tail, told = ReportTail(path), []
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(text)], strict=True):
            with path.open("ab") as file:
                file.write(text[start:end])
            told += tail.read()[0]
    assert told == [json.loads(line) for line in lines if line.startswith(b'{"kind"')]


def test_a_line_without_an_end_is_dropped_once_it_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl"
    path.write_bytes(b"x" * (3 * reports.READ_LIMIT_BYTES) + b'\n{"kind": "after"}\n')
    tail, told = ReportTail(path), []
    more = True
    while more:
        found, more = tail.read()
        told += found
    assert told == [{"kind": "after"}]
    assert "longer than" in str(tail.take_note())
    assert tail.take_note() is None


def test_one_look_takes_a_bounded_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl"
    line = json.dumps({"kind": "step", "text": "x" * 1000}).encode() + b"\n"
    path.write_bytes(line * 1000)
    tail = ReportTail(path)
    first, more = tail.read()
    assert more
    assert 0 < len(first) <= reports.READ_LIMIT_BYTES // len(line)


def test_a_pipe_in_the_place_of_the_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "reports.jsonl")
    tail = ReportTail(tmp_path / "reports.jsonl")
    assert tail.read() == ([], False)
    assert "not a regular file" in str(tail.take_note())


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"kind": "secret"}\n')
    (tmp_path / "reports.jsonl").symlink_to(tmp_path / "elsewhere")
    tail = ReportTail(tmp_path / "reports.jsonl")
    assert tail.read() == ([], False)
    assert tail.take_note() is not None
