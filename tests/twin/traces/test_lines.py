from __future__ import annotations

import gzip
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.errors import DocumentError, UnavailableError, WattlineError
from wattline.twin.traces import lines as reading
from wattline.twin.traces import read_trace
from wattline.twin.traces.lines import open_lines, read_whole


def read(path: Path) -> list[str]:
    with open_lines(path) as lines:
        return list(lines)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 1 << 18])
def test_lines_are_the_same_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: type[bytes], block_bytes: int
) -> None:
    monkeypatch.setattr(reading, "_BLOCK_BYTES", block_bytes)
    path = tmp_path / "a"
    path.write_bytes(pack("größe\r\n\nb\nlast".encode()))

    assert read(path) == ["größe", "", "b", "last"]


def test_a_file_of_several_gzip_members_is_one_text(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\ntw") + gzip.compress(b"o\nthree\n"))

    assert read(path) == ["one", "two", "three"]


def test_a_gzip_file_that_is_cut_off_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(os.urandom(1000).hex().encode())[:-20])

    with pytest.raises(UnavailableError, match="cut off or damaged"):
        read(path)


def test_a_gzip_file_that_was_changed_says_so(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(os.urandom(1000).hex().encode()))
    packed[200:210] = bytes(10)
    path = tmp_path / "a.gz"
    path.write_bytes(packed)

    with pytest.raises(UnavailableError, match="cut off or damaged"):
        read(path)


def test_a_line_without_an_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"first\n" + b"x" * (1 << 24)))

    with pytest.raises(
        DocumentError, match=r"a\.gz:2:1: this line is too long for a trace; allowed: at most 64 KiB"
    ):
        read(path)


def test_a_long_line_among_short_ones_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a\nb\n" + b"x" * 70_000 + b"\nc\n")

    with pytest.raises(DocumentError, match=r":3:1: this line is too long"):
        read(path)


def test_binary_data_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\nth\0ree\n")

    with pytest.raises(DocumentError, match=r":3:1: this is binary data, not text"):
        read(path)


def test_a_file_that_unpacks_beyond_the_bound_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LARGEST_BYTES", 8 << 20)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"1,2,3\n" * (2 << 20)))
    assert path.stat().st_size < 100_000

    with pytest.raises(DocumentError, match="the file is too large; allowed: at most 8 MiB, unpacked"):
        read(path)
    with pytest.raises(DocumentError, match="at most 1 MiB"):
        read_whole(path, 1 << 20)


def test_too_many_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_LINES", 1000)
    path = tmp_path / "a"
    path.write_bytes(b"\n" * 1001)

    with pytest.raises(DocumentError, match="too many lines; allowed: at most 1,000"):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="there is no such file"):
        read_trace(tmp_path / "none.csv")


def test_what_is_not_a_file_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(UnavailableError, match="this is not a file"):
        read_trace(pipe)


@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"timestamp,duration,num_gpus\n", b"; \n", b"{", b"JobID|Submit\n"]),
)
def test_whatever_a_file_holds_it_gives_a_trace_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, start: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "any"
    path.write_bytes(start + raw)

    with suppress(WattlineError):
        assert len(read_trace(path).jobs) > 0
