"""Do the columns of a table still hold what was recorded of them?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from wattline.spec.data_profile import (
    LARGEST_CHANGE,
    MOST_CATEGORIES,
    Column,
    ColumnTolerance,
    DataProfile,
    Tolerance,
    Type,
)
from wattline.spec.nearest import nearest
from wattline.spec.tree import printable
from wattline.units import format_share

# What a reader of the first may meet without noticing: a column of whole numbers is one of numbers.
_WITHIN: dict[Type, frozenset[Type]] = {"number": frozenset({"integer"})}
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference beyond what is allowed."""

    message: str
    outcome: Literal["warn", "fail"] = "fail"
    allow: str = ""  # what would be written in the profile to allow it


def allowance(name: str, share: float) -> str:
    """The tolerance that would allow this much, rounded up to whole percents; none where none could."""
    percent = int(100 * share) + 1
    return f"{name}: {percent}%" if percent <= 100 * LARGEST_CHANGE else ""


def column_drifts(recorded: DataProfile, found: DataProfile) -> Iterator[Drift]:
    before = {column.name: column for column in recorded.columns}
    now = {column.name: column for column in found.columns}
    gone = [name for name in before if name not in now]
    added = [name for name in now if name not in before]
    if before and gone and len(gone) == len(before) and found.header:
        yield Drift(
            f"none of the {len(before)} recorded columns is there; the first line says "
            f"{_some(list(now))}: is the header missing?"
        )
        return
    for name in gone:
        close = nearest(name, added)
        yield Drift(f"column {name}: recorded, not found" + (f"; there is {close!r}" if close else ""))
    if added and not recorded.tolerance.new_columns:
        yield Drift(
            f"columns found that were not recorded: {_some(added)}",
            outcome="warn",
            allow="new_columns: true",
        )
    shared = [name for name in before if name in now]
    if recorded.form == "csv" and shared != [name for name in now if name in before]:
        yield Drift("columns stand in another order; a reader by position would mix them up", outcome="warn")
    for name in shared:
        yield from _one(before[name], now[name], recorded.tolerance, sampled=recorded.sampled is not None)
        if found.sampled is None:
            yield from _vanished(before[name], now[name])


def _one(before: Column, now: Column, tolerance: Tolerance, *, sampled: bool) -> Iterator[Drift]:
    own = before.tolerance or ColumnTolerance()
    nulls = tolerance.nulls if own.nulls is None else own.nulls
    if now.nulls > before.nulls + nulls:
        yield Drift(
            f"column {before.name}: nulls recorded {format_share(before.nulls)}, "
            f"found {format_share(now.nulls)}; {100 * nulls:.3g} points more are allowed",
            allow=allowance("nulls", now.nulls - before.nulls),
        )
    if "empty" in (before.type, now.type):
        return  # there is nothing to compare, and nulls tell
    if now.type != before.type and now.type not in _WITHIN.get(before.type, ()):
        yield Drift(f"column {before.name}: type recorded {before.type}, found {now.type}")
        return
    doubtful: Literal["warn", "fail"] = "warn" if sampled else "fail"
    yield from _range(before, now, tolerance.range if own.range is None else own.range, doubtful)
    yield from _longest(before, now, tolerance.length if own.length is None else own.length)
    may_grow = tolerance.new_categories if own.new_categories is None else own.new_categories
    if before.categories is not None and not may_grow:
        yield from _categories(before, now, before.categories, doubtful)


def _range(before: Column, now: Column, allowed: float, outcome: Literal["warn", "fail"]) -> Iterator[Drift]:
    if before.min is None or before.max is None or now.min is None or now.max is None:
        return
    # A column of one value has no width; then its size is the measure.
    width = (before.max - before.min) or abs(before.max)
    slack = allowed * width
    if now.min < before.min - slack or now.max > before.max + slack:
        beyond = max(before.min - now.min, now.max - before.max)
        yield Drift(
            f"column {before.name}: range recorded {before.min:.6g} to {before.max:.6g}, "
            f"found {now.min:.6g} to {now.max:.6g}; {format_share(allowed)} beyond either end is allowed",
            outcome=outcome,
            allow=allowance("range", beyond / width) if width else "",
        )


def _longest(before: Column, now: Column, allowed: float) -> Iterator[Drift]:
    if before.longest is None or now.longest is None or before.categories is not None:
        return
    if now.longest > before.longest * (1 + allowed):
        yield Drift(
            f"column {before.name}: longest text recorded {before.longest:,} characters, "
            f"found {now.longest:,}",
            outcome="warn",
            allow=allowance("length", now.longest / max(1, before.longest) - 1),
        )


def _categories(
    before: Column, now: Column, known: tuple[str, ...], outcome: Literal["warn", "fail"]
) -> Iterator[Drift]:
    if now.categories is None:
        yield Drift(
            f"column {before.name}: recorded {len(known)} categories, found more than {MOST_CATEGORIES} "
            "different values or longer ones",
            outcome=outcome,
            allow="new_categories: true",
        )
        return
    new = [value for value in now.categories if value not in known]
    if new:
        yield Drift(
            f"column {before.name}: recorded categories {_some(known)}, found also {_some(new)}",
            outcome=outcome,
            allow="new_categories: true",
        )


def _vanished(before: Column, now: Column) -> Iterator[Drift]:
    """A class without a row is not learned; whether that is meant, only people know."""
    gone = [value for value in before.categories or () if value not in (now.categories or (value,))]
    if gone and now.type == before.type:
        yield Drift(f"column {before.name}: recorded categories without a row: {_some(gone)}", outcome="warn")


def _some(values: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(printable(value, 40) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN} more"
