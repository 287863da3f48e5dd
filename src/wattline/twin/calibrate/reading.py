"""What does a telemetry file say? CSV or JSON lines, plain or gzip; or a state folder."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from wattline.errors import DocumentError, Problem, UnavailableError
from wattline.spec.tree import printable
from wattline.twin.calibrate.journaled import read_journal
from wattline.twin.calibrate.telemetry import BadReadingError, Collector, Telemetry

COLUMNS = ("at", "subject", "quantity", "value")
LARGEST_BYTES = 2 << 30  # unpacked
_LONGEST_LINE = 4096
_GZIP = b"\x1f\x8b"
_ALLOWED = f"CSV that begins with {','.join(COLUMNS)}, or JSON lines with these keys"

_Reading = tuple[object, object, object, object]  # as written
_Parse = Callable[[str], _Reading]


def read_telemetry(path: str | Path) -> Telemetry:
    """Read all of it; lines that cannot be used are counted, with the numbers of the first.

    Raises UnavailableError when there is nothing to read, and DocumentError when it is not telemetry at all.
    """
    path = Path(path)
    shown = printable(str(path), longest=1000)
    if path.is_dir():
        return read_journal(path, shown)
    try:
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == _GZIP
            with gzip.open(file, "rb") if packed else file as unpacked:
                return _read_lines(unpacked, shown)
    except FileNotFoundError as error:
        raise UnavailableError(f"{shown}: there is no such file", hint="check the path") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnavailableError(f"{shown}: the gzip stream is broken: {error}") from error
    except OSError as error:
        raise UnavailableError(f"{shown}: cannot be read: {error.strerror or error}") from error


def _read_lines(file: BinaryIO | gzip.GzipFile, shown: str) -> Telemetry:
    collector = Collector(shown)
    lines = _lines(file, shown)
    number, first = next(((number, line) for number, line in lines if line.strip()), (0, b""))
    if not number:
        raise DocumentError(Problem(file=shown, message="the file is empty", allowed=_ALLOWED))
    parse: _Parse = _from_json
    if first.lstrip(b"\xef\xbb\xbf \t").startswith(b"{"):
        _take(collector, number, first, parse)
    else:
        parse = _Order(first, number, shown).pick
    for number, line in lines:
        if line.strip():
            _take(collector, number, line, parse)
    return collector.finish()


class _Order:
    """Where the four columns stand; others are left alone."""

    def __init__(self, line: bytes, number: int, shown: str) -> None:
        text = line.decode("utf-8-sig", errors="replace")
        names = [name.strip().strip('"').lower() for name in text.split(",")]
        if missing := [column for column in COLUMNS if column not in names]:
            message = f"the first line names the columns; missing: {', '.join(missing)}"
            raise DocumentError(Problem(file=shown, line=number, column=1, message=message, allowed=_ALLOWED))
        self._at = [names.index(column) for column in COLUMNS]

    def pick(self, line: str) -> _Reading:
        cells = line.split(",") if '"' not in line else next(csv.reader([line]))
        try:
            at, subject, quantity, value = (cells[position].strip() for position in self._at)
        except IndexError:
            raise BadReadingError(f"the line has {len(cells)} columns, too few") from None
        return at, subject, quantity, value


def _from_json(line: str) -> _Reading:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadReadingError("this is not JSON") from error
    if not isinstance(found, dict) or not found.keys() >= set(COLUMNS):
        raise BadReadingError(f"a line is an object with {', '.join(COLUMNS)}")
    return found["at"], found["subject"], found["quantity"], found["value"]


def _take(collector: Collector, number: int, line: bytes, parse: _Parse) -> None:
    try:
        collector.take(*_read_line(line, parse))
    except UnicodeDecodeError:
        collector.refuse(number, "the line is not UTF-8")
    except (BadReadingError, csv.Error) as error:
        collector.refuse(number, str(error))


def _read_line(line: bytes, parse: _Parse) -> tuple[float, str, str, float]:
    if len(line) > _LONGEST_LINE:
        raise BadReadingError(f"the line is longer than {_LONGEST_LINE:,} bytes")
    at, subject, quantity, value = parse(line.decode("utf-8-sig"))
    if not isinstance(subject, str) or not isinstance(quantity, str):
        raise BadReadingError("subject and quantity are text")
    return _moment(at), subject, quantity, _number(value)


def _number(value: object) -> float:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise BadReadingError(f"the value is a number, got {printable(repr(value), longest=40)}")


def _moment(value: object) -> float:
    """Unix seconds, or ISO 8601; without a zone that is UTC."""
    try:
        return _number(value)
    except BadReadingError:
        pass
    try:
        moment = datetime.fromisoformat(value if isinstance(value, str) else "")
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        shown = printable(repr(value), longest=40)
        raise BadReadingError(f"the time is Unix seconds or ISO 8601, got {shown}") from None


def _lines(file: BinaryIO | gzip.GzipFile, shown: str) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers; of one that is too long only the beginning is kept."""
    number = read = 0
    while line := file.readline(_LONGEST_LINE + 1):
        number += 1
        read += len(line)
        rest = line
        while rest and not rest.endswith(b"\n") and len(rest) > _LONGEST_LINE:
            rest = file.readline(_LONGEST_LINE + 1)
            read += len(rest)
        if read > LARGEST_BYTES:
            allowed = f"at most {LARGEST_BYTES >> 30} GiB unpacked"
            raise DocumentError(Problem(file=shown, message="the file is too large", allowed=allowed))
        yield number, line
