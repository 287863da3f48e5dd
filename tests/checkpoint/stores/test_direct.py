"""How do many bytes get to a disk soon?"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattline.checkpoint.stores import direct
from wattline.checkpoint.stores.direct import DirectWriter

BUFFER_BYTES = 4 * 2**20


@contextmanager
def writing(path: Path) -> Iterator[DirectWriter]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    writer = DirectWriter(descriptor)
    try:
        yield writer
    finally:
        writer.close()
        os.close(descriptor)


def pieces_of(size_bytes: int, piece_bytes: int) -> list[bytes]:
    data = np.random.default_rng(size_bytes).bytes(size_bytes)
    return [data[start : start + piece_bytes] for start in range(0, size_bytes, piece_bytes)]


@pytest.mark.parametrize("piece_bytes", [1000, BUFFER_BYTES, 3 * BUFFER_BYTES + 5])
@pytest.mark.parametrize(
    "size_bytes", [0, 1, 4096, BUFFER_BYTES - 1, BUFFER_BYTES, BUFFER_BYTES + 1, 3 * BUFFER_BYTES + 777]
)
def test_a_file_is_what_was_written_whatever_the_pieces(
    tmp_path: Path, size_bytes: int, piece_bytes: int
) -> None:
    pieces = pieces_of(size_bytes, max(piece_bytes, size_bytes // 500))
    with writing(tmp_path / "file") as writer:
        for piece in pieces:
            writer.write(memoryview(piece))
        writer.sync()
    assert (tmp_path / "file").read_bytes() == b"".join(pieces)


class System:
    """The operating system, but for how it writes."""

    def __init__(self, answers: Any) -> None:
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, descriptor: int, data: memoryview) -> int:
        taken: int = self._answers(descriptor, data)
        return taken


def test_where_the_file_system_refuses_it_goes_through_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = []

    def answers(descriptor: int, data: memoryview) -> int:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT:
            refused.append(len(data))
            raise OSError(errno.EINVAL, "no")
        return os.write(descriptor, data[:1_000_001])

    monkeypatch.setattr(direct, "os", System(answers))
    pieces = pieces_of(3 * BUFFER_BYTES + 5, BUFFER_BYTES // 2)
    with writing(tmp_path / "file") as writer:
        for piece in pieces:
            writer.write(memoryview(piece))
        writer.sync()
    assert refused == [BUFFER_BYTES]
    assert (tmp_path / "file").read_bytes() == b"".join(pieces)


def test_a_write_behind_the_back_that_failed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(direct, "os", System(answers))
    with writing(tmp_path / "file") as writer:
        writer.write(memoryview(bytes(BUFFER_BYTES)))
        for _ in range(2):  # whoever does not listen is told again
            with pytest.raises(OSError, match="full"):
                writer.sync()
