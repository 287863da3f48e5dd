"""Series: hours of the year, whatever the year, and sums that need no walking."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.errors import DocumentError
from wattline.twin.surroundings.series import (
    HOURS_IN_A_LEAP_YEAR,
    Constant,
    HourlySeries,
    YearOfHours,
    hour_of_leap_year,
)

NUMBERED = HourlySeries([float(hour) for hour in range(HOURS_IN_A_LEAP_YEAR)])
UPS_AND_DOWNS = HourlySeries([float((hour * 7919) % 101 - 20) for hour in range(HOURS_IN_A_LEAP_YEAR)])
HOUR = 3600.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_a_leap_year_has_8784_hours_and_each_is_its_own() -> None:
    begin = at("2024-01-01")
    assert [NUMBERED.at(begin + hour * HOUR) for hour in range(8784)] == list(range(8784))
    assert NUMBERED.at(at("2025-01-01")) == 0.0


def test_a_value_holds_until_the_end_of_its_hour() -> None:
    begin = at("2024-03-10T05:00")
    assert NUMBERED.at(begin) == NUMBERED.at(begin + 3599.999) == NUMBERED.at(begin + HOUR) - 1.0


@pytest.mark.parametrize("year", [1971, 2023, 2024, 2025, 2026, 2100])
@pytest.mark.parametrize("day", ["01-01T00", "02-28T23", "03-01T00", "07-14T12", "12-31T23"])
def test_another_year_finds_the_same_month_day_and_hour(year: int, day: str) -> None:
    assert hour_of_leap_year(at(f"{year}-{day}:00")) == hour_of_leap_year(at(f"2024-{day}:00"))


@given(st.integers(0, 3 * 366 * 24 * 60), st.integers(0, 400 * 24 * 60))
def test_an_integral_is_the_sum_of_its_hours(start_minutes: int, minutes: int) -> None:
    start = at("2022-11-01") + 60.0 * start_minutes
    end = start + 60.0 * minutes
    walked, here = 0.0, start
    while here < end:
        until = min(end, (here // HOUR + 1) * HOUR)
        walked += UPS_AND_DOWNS.at(here) * (until - here) / HOUR
        here = until
    assert UPS_AND_DOWNS.integral(start, end) == pytest.approx(walked, abs=1e-6)


def test_an_integral_over_years_counts_the_leap_day_only_where_there_is_one() -> None:
    ones = HourlySeries([1.0] * HOURS_IN_A_LEAP_YEAR)
    assert ones.integral(at("2023-01-01"), at("2024-01-01")) == 8760.0
    assert ones.integral(at("2023-07-01"), at("2027-07-01")) == pytest.approx(8784.0 + 3 * 8760.0)


def test_a_constant_is_the_same_for_ever() -> None:
    assert Constant(0.1).at(0.0) == Constant(0.1).at(4e9) == 0.1
    assert Constant(0.1).integral(0.0, 7200.0) == pytest.approx(0.2)


def hours(*values: tuple[str, float | None]) -> YearOfHours[float]:
    year = YearOfHours[float]("f.csv")
    for time, value in values:
        year.put(datetime.fromisoformat(time).replace(tzinfo=UTC), value)
    return year


def a_year(first: datetime, number: int) -> YearOfHours[float]:
    year = YearOfHours[float]("f.csv")
    for hour in range(number):
        year.put(first + timedelta(hours=hour), float(hour))
    return year


def test_a_whole_year_has_no_gaps() -> None:
    values, missing = a_year(datetime(2024, 1, 1, tzinfo=UTC), 8784).finish()
    assert (values[0], values[-1], missing) == (0.0, 8783.0, 0)


def test_a_common_year_repeats_28_february_and_that_is_no_gap() -> None:
    values, missing = a_year(datetime(2023, 1, 1, tzinfo=UTC), 8760).finish()
    assert missing == 0
    assert values[59 * 24 : 60 * 24] == values[58 * 24 : 59 * 24]
    assert values[60 * 24] == values[59 * 24 - 1] + 1.0


def test_a_gap_keeps_the_value_before_it_and_is_counted() -> None:
    year = a_year(datetime(2024, 1, 1, tzinfo=UTC), 100)
    year.put(datetime(2024, 1, 5, 4, tzinfo=UTC), None)
    year.put(datetime(2024, 1, 5, 5, tzinfo=UTC), -3.0)
    values, missing = year.finish()
    assert values[99:103] == [99.0, 99.0, -3.0, -3.0]
    assert missing == 8784 - 101 - 24


def test_a_year_that_begins_with_a_gap_begins_as_it_ended() -> None:
    values, _ = hours(("2024-01-01T02:00", 1.0), ("2024-12-31T23:00", 2.0)).finish()
    assert values[:3] == [2.0, 2.0, 1.0]


def test_two_rows_for_one_hour_are_an_error() -> None:
    with pytest.raises(DocumentError, match="this hour has a value already"):
        hours(("2024-01-01T02:00", 1.0), ("2024-01-01T02:15", 2.0))


def test_two_rows_for_one_hour_of_two_years_are_an_error() -> None:
    with pytest.raises(DocumentError, match="of another year"):
        hours(("2024-01-01T02:00", 1.0), ("2025-01-01T02:00", 2.0))


@pytest.mark.parametrize("time", ["0001-01-01", "1969-12-31", "9999-12-31"])
def test_a_year_that_nobody_metered_is_an_error(time: str) -> None:
    with pytest.raises(DocumentError, match="the year is out of range"):
        hours((time, 1.0))


def test_a_year_without_a_value_is_an_error() -> None:
    with pytest.raises(DocumentError, match="no hour has a value"):
        hours(("2024-01-01", None)).finish()
