"""What does a series file hold? Text out of plain or gzip'd files, no larger than a year of hours needs."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from wattline.errors import DocumentError, Problem, UnavailableError
from wattline.spec.tree import printable

LARGEST_BYTES = 16 << 20  # unpacked; a year of 30 columns is 2 MB
MOST_ROWS = 10_000  # a year of hours, and what stands above them
_GZIP = b"\x1f\x8b"
_GAPS = frozenset({"", "nan", "na", "n/a", "null", "none"})


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, with what it takes to complain about it."""

    file: str
    line: int
    cells: tuple[str, ...]

    def cell(self, position: int) -> str:
        if position >= len(self.cells):
            raise self.wrong("the row is too short", value=f"{len(self.cells)} cells")
        return self.cells[position].strip()

    def number(
        self, position: int, what: str, *, least: float, most: float, missing: float | None = None
    ) -> float | None:
        """A number within bounds; None where the cell says that there is none."""
        text = self.cell(position)
        if text.lower() in _GAPS:
            return None
        try:
            number = float(text)
        except ValueError:
            raise self.wrong("this is not a number", field=what, value=text) from None
        if number == missing:
            return None
        if not least <= number <= most:
            allowed = f"{least:g} to {most:g}"
            raise self.wrong("the number is out of range", field=what, value=text, allowed=allowed)
        return number

    def time(self, position: int) -> datetime:
        """A time; one that names no zone is UTC."""
        text = self.cell(position)
        time = time_of(text, UTC)
        if time is None:
            raise self.wrong("this is not a time", value=text, allowed="ISO 8601, such as 2024-01-01 00:00")
        return time

    def wrong(
        self, message: str, *, field: str = "", value: str | None = None, allowed: str | None = None
    ) -> DocumentError:
        shown = None if value is None else repr(printable(value))
        return DocumentError(
            Problem(
                file=self.file,
                line=self.line,
                column=1,
                field=field,
                message=message,
                value=shown,
                allowed=allowed,
            )
        )


def time_of(text: str, zone: tzinfo) -> datetime | None:
    """A written time, in `zone` unless it names its own; None where it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=zone)


def read_series_text(path: Path) -> str:
    """The whole file as text, unpacked by its content and not by its name."""
    file = shown(path)
    try:
        with path.open("rb") as raw:
            packed = raw.read(LARGEST_BYTES + 1)
    except FileNotFoundError as error:
        raise UnavailableError(f"{file}: there is no such series", hint="check the path") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UnavailableError(f"{file}: cannot be read: {reason}") from error
    data = _unpacked(packed, file) if packed.startswith(_GZIP) else packed
    if len(data) > LARGEST_BYTES:
        allowed = f"at most {LARGEST_BYTES >> 20} MiB, unpacked"
        raise DocumentError(Problem(file=file, message="the file is too large", allowed=allowed))
    # Weather stations are named in whatever encoding their country had; what is computed with is ASCII.
    return data.decode("utf-8-sig", errors="replace")


def rows_of(text: str, path: Path) -> Iterator[Row]:
    """The lines of a comma-separated file that are not empty."""
    file = shown(path)
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for cells in reader:
            if reader.line_num > MOST_ROWS:
                problem = Problem(
                    file=file,
                    line=reader.line_num,
                    message="too many rows",
                    allowed="a year of hours at most",
                )
                raise DocumentError(problem)
            if cells:
                yield Row(file, reader.line_num, tuple(cells))
    except csv.Error as error:
        problem = Problem(file=file, line=reader.line_num, column=1, message=f"this is not a table: {error}")
        raise DocumentError(problem) from error


def shown(path: Path) -> str:
    return printable(str(path), longest=1000)


def _unpacked(packed: bytes, file: str) -> bytes:
    try:
        with gzip.open(io.BytesIO(packed)) as stream:
            return stream.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DocumentError(Problem(file=file, message=f"the gzip file is broken: {error}")) from error
