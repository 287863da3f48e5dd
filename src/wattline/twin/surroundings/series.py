"""Series: what does something that changes by the hour stand at, and what does it add up to over a span?

Hours are kept by their place in a leap year, in UTC. A year that the file does not cover finds the same
month, day and hour of the year that it does, so a series never ends; 29 February, where a file has none,
is the day before once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate
from typing import Generic, TypeVar

from wattline.errors import DocumentError, Problem
from wattline.units import SECONDS_PER_HOUR

HOURS_IN_A_LEAP_YEAR = 366 * 24
_LEAP_DAY = slice(59 * 24, 60 * 24)
_DAY_BEFORE = slice(58 * 24, 59 * 24)
FIRST_YEAR, LAST_YEAR = 1970, 2200

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that never changes."""

    value: float

    def at(self, at: float) -> float:  # noqa: ARG002 - it asks for no time, but a series does
        return self.value

    def integral(self, start: float, end: float) -> float:
        return self.value * (end - start) / SECONDS_PER_HOUR


class HourlySeries:
    """A value for each hour of the year, for ever."""

    __slots__ = ("_common", "_leap", "_values")

    def __init__(self, values: Sequence[float]) -> None:
        """`values` are those of a leap year's hours."""
        assert len(values) == HOURS_IN_A_LEAP_YEAR
        self._values = tuple(values)
        common = self._values[: _LEAP_DAY.start] + self._values[_LEAP_DAY.stop :]
        self._leap = tuple(accumulate(self._values, initial=0.0))
        self._common = tuple(accumulate(common, initial=0.0))

    def at(self, at: float) -> float:
        return self._values[hour_of_leap_year(at)]

    def integral(self, start: float, end: float) -> float:
        """Value times hours between two times: two look-ups, however far apart within a year they are."""
        first, before_start = self._so_far(start)
        last, before_end = self._so_far(end)
        whole_years = sum(self._sums(year)[-1] for year in range(first, last))
        return whole_years + before_end - before_start

    def _so_far(self, at: float) -> tuple[int, float]:
        """The year, and what it added up to until now."""
        year, hours = _year_and_hours(at)
        sums, whole = self._sums(year), int(hours)
        return year, sums[whole] + (hours - whole) * (sums[whole + 1] - sums[whole])

    def _sums(self, year: int) -> tuple[float, ...]:
        return self._leap if _is_leap(year) else self._common


def hour_of_leap_year(at: float) -> int:
    """Where a time stands among the 8784 hours of a leap year; others skip the leap day's."""
    year, hours = _year_and_hours(at)
    hour = int(hours)
    return hour if hour < _LEAP_DAY.start or _is_leap(year) else hour + 24


def _year_and_hours(at: float) -> tuple[int, float]:
    year = datetime.fromtimestamp(at, UTC).year
    return year, (at - _begins_at(year)) / SECONDS_PER_HOUR


@lru_cache(maxsize=LAST_YEAR - FIRST_YEAR)
def _begins_at(year: int) -> float:
    return datetime(year, 1, 1, tzinfo=UTC).timestamp()


@lru_cache(maxsize=LAST_YEAR - FIRST_YEAR)
def _is_leap(year: int) -> bool:
    return _begins_at(year + 1) - _begins_at(year) == HOURS_IN_A_LEAP_YEAR * SECONDS_PER_HOUR


class YearOfHours(Generic[Value]):
    """Collects the rows of one file, in any order, and mends what is missing."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._values: list[Value | None] = [None] * HOURS_IN_A_LEAP_YEAR
        self._hours: list[int | None] = [None] * HOURS_IN_A_LEAP_YEAR  # since 1970: whose value it is

    def put(self, time: datetime, value: Value | None, *, line: int = 0, field: str = "") -> None:
        """Take the value of an hour; None is a gap. A time that is not a whole hour counts from its hour."""
        if not FIRST_YEAR < time.year < LAST_YEAR:
            allowed = f"between {FIRST_YEAR} and {LAST_YEAR}"
            raise self._wrong("the year is out of range", time, line, field, allowed)
        at = time.timestamp()
        slot, hour = hour_of_leap_year(at), int(at // SECONDS_PER_HOUR)
        if self._hours[slot] == hour:
            raise self._wrong("this hour has a value already", time, line, field, "one row for each hour")
        if self._hours[slot] is not None:
            message = "this hour of the year has a value already, of another year"
            raise self._wrong(message, time, line, field, "one year at most")
        self._hours[slot], self._values[slot] = hour, value

    def finish(self) -> tuple[list[Value], int]:
        """All hours of a leap year, and how many of them had to be filled with the last value before them."""
        known = [value for value in self._values if value is not None]
        if not known:
            raise DocumentError(Problem(file=self._file, message="no hour has a value"))
        skips_leap_day = all(hour is None for hour in self._hours[_LEAP_DAY])
        filled = list(self._carried(known[-1]))
        missing = HOURS_IN_A_LEAP_YEAR - len(known)
        if skips_leap_day:
            filled[_LEAP_DAY] = filled[_DAY_BEFORE]
            missing -= 24
        return filled, missing

    def _carried(self, last: Value) -> Iterator[Value]:
        """The year begins with how it ended."""
        for value in self._values:
            last = last if value is None else value
            yield last

    def _wrong(self, message: str, time: datetime, line: int, field: str, allowed: str) -> DocumentError:
        value = time.isoformat()
        return DocumentError(
            Problem(
                file=self._file,
                line=line,
                column=1 if line else 0,
                field=field,
                message=message,
                value=value,
                allowed=allowed,
            )
        )
