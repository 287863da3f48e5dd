"""What does a column hold? Counted cell by cell, in memory that does not grow with the rows."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Literal, NamedTuple

from wattline.spec.data_profile import LONGEST_CATEGORY, MOST_CATEGORIES, Column, Type

Kind = Literal["integer", "number", "boolean", "date-time", "text", "nested", "null"]

# What pandas reads as missing, in any case of letters.
_NULLS = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "<na>"})
_BOOLEANS = frozenset({"true", "false"})
_INTEGER = re.compile(r"[-+]?\d{1,40}", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,4})?", re.ASCII)
_DATE_TIME = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[-+]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_LONGEST_NUMBER = 96
_LARGEST = 1e300  # a range is written and read as a double


class Cell(NamedTuple):
    kind: Kind
    number: float = 0.0  # where the kind is one
    text: str | None = None  # as it was written, where it was written as text


_NULL = Cell("null")


def read_cell(text: str) -> Cell:
    """A cell of a table in which everything is written as text."""
    word = text.strip()
    if len(word) > _LONGEST_NUMBER:
        return Cell("text", text=text)
    if word.lower() in _NULLS:
        return _NULL
    if _INTEGER.fullmatch(word):
        return Cell("integer", float(word), text)
    if _NUMBER.fullmatch(word):
        number = float(word)
        return Cell("number", number, text) if abs(number) <= _LARGEST else Cell("text", text=text)
    if word.lower() in _BOOLEANS:
        return Cell("boolean", text=text)
    return Cell("date-time" if _DATE_TIME.fullmatch(word) else "text", text=text)


def read_value(value: object) -> Cell:
    """A value that brings its type, from JSON or Parquet; a date-time in text is still one."""
    if value is None or (isinstance(value, float | Decimal) and math.isnan(value)):
        return _NULL
    if isinstance(value, bool):
        return Cell("boolean")
    if isinstance(value, int | float | Decimal):
        if not -_LARGEST <= value <= _LARGEST:
            return Cell("text")  # infinity is no number to train on, and text among numbers is told
        return Cell("integer" if isinstance(value, int) else "number", float(value))
    if isinstance(value, str):
        return Cell("date-time" if _DATE_TIME.fullmatch(value) else "text", text=value)
    return Cell("date-time" if isinstance(value, date) else "nested")


@dataclass(slots=True)
class Tally:
    """One column, as far as it was read."""

    typed: bool  # values bring their types, so text among numbers is a mixture
    cells: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    least: float = math.inf
    most: float = -math.inf
    longest: int = 0
    distinct: set[str] | None = field(default_factory=set)

    def add_texts(self, texts: Iterable[str]) -> None:
        for text, count in Counter(texts).items():
            self.add(read_cell(text), count)

    def add(self, cell: Cell, count: int = 1) -> None:
        kind, number, text = cell
        self.cells += count
        self.kinds[kind] += count
        if kind in ("integer", "number"):
            self.least, self.most = min(self.least, number), max(self.most, number)
        if text is not None:
            self.longest = max(self.longest, len(text))
            self._distinguish(text)

    def _distinguish(self, text: str) -> None:
        if self.distinct is None or text in self.distinct:
            return
        too_many = len(self.distinct) == MOST_CATEGORIES
        if too_many or len(text) > LONGEST_CATEGORY or not text.isprintable():
            self.distinct = None
        else:
            self.distinct.add(text)

    @property
    def type(self) -> Type:
        kinds = {kind for kind in self.kinds if kind != "null"}
        if not kinds:
            return "empty"
        if kinds == {"integer", "number"}:
            return "number"
        if len(kinds) == 1:
            return next(iter(kinds))
        return "mixed" if self.typed and not kinds <= {"text", "date-time"} else "text"

    def column(self, name: str, rows: int) -> Column:
        """What was found; a row in which the column does not stand counts as null."""
        type_ = self.type
        is_number = type_ in ("integer", "number")
        is_text = type_ in ("text", "mixed")
        present = self.cells - self.kinds["null"]
        return Column(
            name=name,
            type=type_,
            nulls=round(1 - present / rows, 4) if rows else 0.0,
            min=self.least if is_number else None,
            max=self.most if is_number else None,
            longest=self.longest if is_text else None,
            categories=None if self.distinct is None or type_ != "text" else tuple(sorted(self.distinct)),
        )


def read_object(line: str) -> dict[str, object] | None:
    """A line of JSON lines, or nothing where it is not an object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
