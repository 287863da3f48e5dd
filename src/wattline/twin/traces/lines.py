"""What are the lines of this file? Plain or gzip, told by its first bytes; never more than one can hold.

A trace comes from elsewhere: a small file can unpack to terabytes, and a file without line ends is one line.
Whatever it is, reading stops at a bound and says which.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from wattline.errors import DocumentError, Problem, UnavailableError
from wattline.spec.tree import printable

LARGEST_BYTES = 4 << 30
LONGEST_LINE_BYTES = 64 << 10
MOST_LINES = 20_000_000

_BLOCK_BYTES = 256 << 10
_GZIP = b"\x1f\x8b"


def shown(path: Path) -> str:
    return printable(str(path), longest=1000)


@contextmanager
def open_lines(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a text file, without their ends."""
    with _open_bytes(path) as stream:
        yield chain.from_iterable(_blocks_of_lines(stream, shown(path)))


def read_whole(path: Path, largest_bytes: int) -> bytes:
    """All of a file that only makes sense as a whole."""
    file = shown(path)
    with _open_bytes(path) as stream:
        parts: list[bytes] = []
        left_bytes = largest_bytes
        while part := _read_block(stream, file):
            left_bytes -= len(part)
            if left_bytes < 0:
                raise DocumentError(_too_large(file, largest_bytes))
            parts.append(part)
    return b"".join(parts)


@contextmanager
def _open_bytes(path: Path) -> Iterator[BinaryIO]:
    file = shown(path)
    try:
        if path.exists() and not path.is_file():
            raise UnavailableError(f"{file}: this is not a file", hint="name a trace file, plain or gzip")
        raw = path.open("rb")
    except FileNotFoundError as error:
        raise UnavailableError(f"{file}: there is no such file", hint="check the path") from error
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{file}: cannot be read: {error}") from error
    with raw:
        if raw.peek(2)[:2] != _GZIP:
            yield raw
            return
        with gzip.GzipFile(fileobj=raw) as unpacked:
            yield cast("BinaryIO", unpacked)


def _read_block(stream: BinaryIO, file: str) -> bytes:
    try:
        return stream.read(_BLOCK_BYTES)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UnavailableError(
            f"{file}: this gzip file is cut off or damaged ({error})", hint="fetch it again"
        ) from error
    except OSError as error:
        raise UnavailableError(f"{file}: cannot be read: {error.strerror or error}") from error


def _blocks_of_lines(stream: BinaryIO, file: str) -> Iterator[list[str]]:
    rest = b""
    lines_before = total_bytes = 0
    while block := _read_block(stream, file):
        total_bytes += len(block)
        if total_bytes > LARGEST_BYTES:
            raise DocumentError(_too_large(file, LARGEST_BYTES))
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            lines = _lines_of(whole, file, lines_before)
            lines_before += len(lines)
            yield lines
        if len(rest) > LONGEST_LINE_BYTES:
            raise DocumentError(_too_long(file, lines_before + 1))
    if rest:
        yield _lines_of(rest, file, lines_before)


def _lines_of(block: bytes, file: str, lines_before: int) -> list[str]:
    if (nul := block.find(b"\0")) >= 0:
        line = lines_before + block.count(b"\n", 0, nul) + 1
        raise DocumentError(Problem(file=file, line=line, column=1, message="this is binary data, not text"))
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
    # Only names and comments hold more than ASCII, and old archives write them in other encodings.
    lines = block.decode("utf-8", "replace").split("\n")
    if lines_before + len(lines) > MOST_LINES:
        raise DocumentError(
            Problem(file=file, message="the trace has too many lines", allowed=f"at most {MOST_LINES:,}")
        )
    if max(map(len, lines)) > LONGEST_LINE_BYTES:
        longest = next(at for at, line in enumerate(lines, 1) if len(line) > LONGEST_LINE_BYTES)
        raise DocumentError(_too_long(file, lines_before + longest))
    if not lines_before:
        lines[0] = lines[0].removeprefix("\ufeff")
    return lines


def _too_large(file: str, largest_bytes: int) -> Problem:
    allowed = f"at most {largest_bytes / (1 << 20):,.0f} MiB, unpacked"
    return Problem(file=file, message="the file is too large", allowed=allowed)


def _too_long(file: str, line: int) -> Problem:
    return Problem(
        file=file,
        line=line,
        column=1,
        message="this line is too long for a trace",
        allowed=f"at most {LONGEST_LINE_BYTES >> 10} KiB",
    )
