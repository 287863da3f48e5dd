"""What rows does a table have? CSV, JSON lines and Parquet, tallied column by column."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from wattline.checks.preflight.data.sampling import MOST_BYTES, Sample, shown
from wattline.checks.preflight.data.tallying import Tally, read_cell, read_object, read_value
from wattline.errors import UnavailableError
from wattline.spec.data_profile import MOST_COLUMNS, Column, Delimiter
from wattline.spec.tree import printable

DELIMITERS: dict[str, Delimiter] = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}

_BATCH_ROWS = 4096
_SNIFFED_ROWS = 100
_SNIFFED_CHARACTERS = 1 << 17
_LONGEST_NAME = 80
_HEADERLESS = ("integer", "number", "boolean", "date-time")


class NotInstalledError(UnavailableError):
    """It could be looked at, with a library that is not here."""


@dataclass(slots=True)
class Table:
    """Rows of one or many files, as far as they were read."""

    typed: bool
    delimiter: Delimiter | None = None
    header: bool | None = None
    rows: int = 0
    malformed: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)

    def tally(self, name: str, file: str) -> Tally:
        found = self.tallies.get(name)
        if found is None:
            if len(self.tallies) == MOST_COLUMNS:
                raise UnavailableError(
                    f"{file} has more than {MOST_COLUMNS:,} columns",
                    hint="`--no-profile` pins its hash alone",
                )
            found = self.tallies[name] = Tally(self.typed)
        return found

    def columns(self) -> tuple[Column, ...]:
        return tuple(tally.column(name, self.rows) for name, tally in self.tallies.items())


@contextmanager
def _fields_of_any_length() -> Iterator[None]:
    """A document in a cell is longer than the module's 128 KiB; the sample bounds it anyway."""
    before = csv.field_size_limit(2 * MOST_BYTES)
    try:
        yield
    except csv.Error as error:
        raise UnavailableError(f"this is not CSV: {error}") from error
    finally:
        csv.field_size_limit(before)


def sniff_delimiter(head: str) -> str:
    """The one that gives the most rows the same number of cells, and of those the one with most cells."""
    start = head[:_SNIFFED_CHARACTERS]
    with _fields_of_any_length():
        return max(DELIMITERS, key=lambda delimiter: _agreement(start, delimiter))


def _agreement(start: str, delimiter: str) -> tuple[float, int]:
    rows = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
    widths = [len(row) for row in islice(rows, _SNIFFED_ROWS) if row]
    if not widths or widths[0] == 1:
        return 0.0, 0
    return widths.count(widths[0]) / len(widths), widths[0]


def read_csv(sample: Sample, table: Table, file: str, delimiter: str) -> int:
    """Add rows to a table; how many bytes they took is the answer."""
    table.delimiter = DELIMITERS[delimiter]
    with _fields_of_any_length():
        rows = csv.reader(io.StringIO(sample.chunks[0], newline=""), delimiter=delimiter)
        first = next((row for row in rows if row), None)
        if first is None:
            return sample.chunk_bytes[0]
        has_header = not any(read_cell(cell).kind in _HEADERLESS for cell in first)
        table.header = has_header if table.header is None else table.header and has_header
        if len(first) > MOST_COLUMNS:
            raise UnavailableError(
                f"{file} has {len(first):,} columns; at most {MOST_COLUMNS:,} are looked at",
                hint="`--no-profile` pins its hash alone",
            )
        names = _names(first if has_header else [""] * len(first))
        tallies = [table.tally(name, file) for name in names]
        if not has_header:
            _add_rows([first], tallies, table)
        broken_lines = _add_all(rows, tallies, table)
        if broken_lines:
            return sample.chunk_bytes[0]  # a block could begin inside a cell
        for chunk in sample.chunks[1:]:
            _add_all(csv.reader(io.StringIO(chunk, newline=""), delimiter=delimiter), tallies, table)
    return sum(sample.chunk_bytes)


def _names(header: Sequence[str]) -> list[str]:
    """Plain and unlike each other, so that they can stand in a document."""
    names: list[str] = []
    taken: set[str] = set()
    for number, written in enumerate(header, 1):
        name = plain = printable(written.strip(), _LONGEST_NAME) or f"column {number}"
        repeat = 1
        while name in taken:
            repeat += 1
            name = f"{plain} ({repeat})"
        taken.add(name)
        names.append(name)
    return names


def _add_all(rows: Iterator[list[str]], tallies: list[Tally], table: Table) -> bool:
    """Whether a cell went over more than one line."""
    broken_lines = False
    while batch := list(islice(rows, _BATCH_ROWS)):
        broken_lines = broken_lines or any("\n" in cell for row in batch for cell in row)
        _add_rows([row for row in batch if row], tallies, table)
    return broken_lines


def _add_rows(batch: list[list[str]], tallies: list[Tally], table: Table) -> None:
    width = len(tallies)
    whole = [row for row in batch if len(row) == width]
    table.rows += len(whole)
    table.malformed += len(batch) - len(whole)
    for tally, texts in zip(tallies, zip(*whole, strict=True), strict=False):
        tally.add_texts(texts)


def read_json_lines(sample: Sample, table: Table, file: str) -> int:
    for chunk in sample.chunks:
        for line in chunk.split("\n"):
            if not line.strip():
                continue
            value = read_object(line)
            if value is None:
                table.malformed += 1
                continue
            table.rows += 1
            for key, inner in value.items():
                table.tally(printable(key, _LONGEST_NAME), file).add(read_value(inner))
    return sum(sample.chunk_bytes)


def read_parquet(path: Path, table: Table, most_rows: int) -> int:
    """Add the first rows of a Parquet file; how many rows it has in all is the answer."""
    parquet = _import_parquet(shown(path))
    try:
        with parquet.ParquetFile(path) as file:
            if len(file.schema_arrow.names) > MOST_COLUMNS:
                raise UnavailableError(f"{shown(path)} has more than {MOST_COLUMNS:,} columns")
            for batch in file.iter_batches(batch_size=min(_BATCH_ROWS, most_rows)):
                _add_batch(batch, table, shown(path))
                if table.rows >= most_rows:
                    break
            return int(file.metadata.num_rows)
    except (OSError, ValueError) as error:  # what pyarrow raises derives from these
        raise UnavailableError(f"{shown(path)} is no Parquet that can be read: {error}") from error


def _add_batch(batch: Any, table: Table, file: str) -> None:
    table.rows += batch.num_rows
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        tally = table.tally(printable(str(name), _LONGEST_NAME), file)
        for value in values.to_pylist():
            tally.add(read_value(value))


def _import_parquet(file: str) -> Any:
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise NotInstalledError(
            f"{file} is Parquet, and pyarrow, which reads it, is not installed",
            hint="pip install pyarrow",
        ) from error
