"""`corpus.schema.yaml`: what data looked like when it was pinned, and how far it may move from that.

`wattline data pin` writes it, people review it in a pull request and edit its tolerances.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field

from wattline import units
from wattline.spec.document import Document
from wattline.spec.flaws import Flaw, FlawedError
from wattline.spec.quantities import Flag, Fraction, Number, Whole
from wattline.spec.reader import read_document
from wattline.spec.scalars import resolve

MOST_COLUMNS = 1000
MOST_CATEGORIES = 50
LONGEST_CATEGORY = 40
LARGEST_CHANGE = 100.0

# Rows may also double, which a share of one cannot say.
_CHANGE = units.Kind(name="change", worth={"%": 0.01}, most=LARGEST_CHANGE, example="20%", bare=True)

Change = Annotated[float, BeforeValidator(_CHANGE.parse)]
Count = Annotated[Whole, Field(ge=0)]
Label = Annotated[str, Field(max_length=1000)]
Type = Literal["integer", "number", "boolean", "date-time", "text", "nested", "mixed", "empty"]
Form = Literal["csv", "json lines", "parquet", "text"]
Encoding = Literal["utf-8", "utf-8 with BOM", "utf-16", "not utf-8"]
Delimiter = Literal["comma", "semicolon", "tab", "bar"]


class Tolerance(Document):
    """How far data may move from what was recorded before it is called drift."""

    rows: Change = 0.2  # more or fewer
    nulls: Fraction = 0.02  # points, up
    range: Change = 0.1  # of the recorded width, beyond either end
    length: Change = 1.0  # of the longest text and the mean line
    new_categories: Flag = False
    new_columns: Flag = False


class ColumnTolerance(Document):
    """What one column is allowed instead."""

    nulls: Fraction | None = None
    range: Change | None = None
    length: Change | None = None
    new_categories: Flag | None = None


class Column(Document):
    name: Label
    type: Type
    nulls: Fraction = 0.0
    min: Number | None = None
    max: Number | None = None
    longest: Count | None = None  # characters
    categories: Annotated[tuple[Label, ...], Field(max_length=MOST_CATEGORIES)] | None = None
    tolerance: ColumnTolerance | None = None


class Lines(Document):
    """Lines of text; lengths are in characters."""

    longest: Count = 0
    mean: Annotated[Number, Field(ge=0)] = 0.0
    blank: Fraction = 0.0
    unreadable: Count = 0  # control characters and U+FFFD, which a wrong decoder leaves


class Sampled(Document):
    """Counts are then estimates, and rare values may be missing."""

    bytes: Count
    of: Count


def _check_columns(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    seen: set[str] = set()
    flaws = []
    for position, column in enumerate(columns):
        if column.name in seen:
            flaws.append(
                Flaw(at=(position, "name"), message="two columns have this name", value=repr(column.name))
            )
        seen.add(column.name)
    if flaws:
        raise FlawedError(flaws)
    return columns


class DataProfile(Document):
    form: Form
    encoding: Encoding | None = None
    delimiter: Delimiter | None = None
    header: Flag | None = None
    files: Annotated[Whole, Field(ge=1)] = 1
    left_out: Count = 0  # files of a folder that have another form
    rows: Count
    malformed: Fraction = 0.0  # share of rows that are not as the others
    sampled: Sampled | None = None  # none: all of it was read
    tolerance: Tolerance = Tolerance()
    lines: Lines | None = None
    columns: Annotated[
        tuple[Column, ...], Field(max_length=MOST_COLUMNS), AfterValidator(_check_columns)
    ] = ()


def read_profile(path: str | Path) -> DataProfile:
    """Read a profile; raises UnavailableError where there is none, DocumentError where it is wrong."""
    return read_document(path, DataProfile)


def write_profile(profile: DataProfile, of: str) -> str:
    """The profile as a document that reads back as the same."""
    comment = (
        f"# What {of} looked like when it was pinned; `wattline check` tells what drifted from it.\n"
        "# `tolerance` is for people to edit, also inside a column. `wattline data pin` keeps it and writes\n"
        "# the rest anew.\n"
    )
    fields = profile.model_dump(exclude_none=True, exclude={"tolerance", "columns"})
    if profile.left_out == 0:
        del fields["left_out"]
    fields["malformed"] = _short(profile.malformed)
    fields["tolerance"] = _percentages(profile.tolerance)
    if profile.columns:
        fields["columns"] = [_column(column) for column in profile.columns]
    text = yaml.dump(
        fields, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=4096
    )
    return comment + text


def _column(column: Column) -> dict[str, Any]:
    fields = column.model_dump(exclude_none=True, exclude={"tolerance", "categories"})
    for name in {"nulls", "min", "max"} & fields.keys():
        fields[name] = _short(fields[name])
    if column.categories is not None:
        fields["categories"] = list(column.categories)
    if column.tolerance is not None:
        fields["tolerance"] = _percentages(column.tolerance)
    return fields


def _percentages(tolerance: Tolerance | ColumnTolerance) -> dict[str, Any]:
    given = tolerance.model_dump(exclude_none=True)
    return {
        name: value if isinstance(value, bool) else f"{round(100 * value, 9):.12g}%"
        for name, value in given.items()
    }


def _short(value: float) -> float | int:
    """Whole numbers as people write them, as long as they are exact."""
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


class _Dumper(yaml.SafeDumper):
    """Quotes what the reader's YAML 1.2 would not take for text: PyYAML writes by YAML 1.1."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - an anchor would be refused
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if _is_text(text) else '"')


def _is_text(text: str) -> bool:
    return resolve(text) == text


_Dumper.add_representer(str, _represent_text)


def kept_tolerance(profile: DataProfile, before: DataProfile | None) -> DataProfile:
    """The profile under the tolerances that people gave the one before it."""
    if before is None:
        return profile
    by_name = {column.name: column.tolerance for column in before.columns}
    columns: Sequence[Column] = [
        column.model_copy(update={"tolerance": by_name.get(column.name)}) for column in profile.columns
    ]
    return profile.model_copy(update={"tolerance": before.tolerance, "columns": tuple(columns)})
