"""How hot and humid was it, hour by hour? Open-Meteo's JSON and EnergyPlus weather (EPW)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec

from wattline.errors import DocumentError, Problem
from wattline.physics.weather import Weather, predict_weather
from wattline.spec.tree import printable
from wattline.twin.surroundings.files import Row, read_series_text, rows_of, shown, time_of
from wattline.twin.surroundings.series import YearOfHours

_COLDEST_CELSIUS, _HOTTEST_CELSIUS = -90.0, 70.0
_MOST_OFFSET_SECONDS = 18 * 3600

# EPW: where each figure stands in a row, and what is written there when it is missing.
_EPW_MONTH, _EPW_DAY, _EPW_HOUR, _EPW_DRY_BULB, _EPW_HUMIDITY = 1, 2, 3, 6, 8
_EPW_NO_DRY_BULB, _EPW_NO_HUMIDITY = 99.9, 999.0
_EPW_ZONE = 8  # of the LOCATION line: hours east of Greenwich, daylight saving never applied
_A_COMMON_YEAR, _A_LEAP_YEAR = 2023, 2024


class _Hourly(msgspec.Struct):
    time: list[str]
    temperature_2m: list[float | None]
    relative_humidity_2m: list[float | None]


class _OpenMeteo(msgspec.Struct):
    hourly: _Hourly
    hourly_units: dict[str, str]
    # One offset for the whole file, daylight saving or not: its local times never jump.
    utc_offset_seconds: int = 0


def read_weather(path: Path) -> tuple[list[Weather], int]:
    """The weather of all hours of a leap year, and how many of them were missing."""
    text = read_series_text(path)
    begin = text.lstrip()[:9].upper()
    if begin.startswith("{"):
        return _read_open_meteo(text, shown(path))
    if begin.startswith("LOCATION,"):
        return _read_epw(rows_of(text, path), shown(path))
    allowed = "Open-Meteo JSON, or EPW, which begins with LOCATION"
    raise DocumentError(
        Problem(file=shown(path), line=1, column=1, message="this is no weather file", allowed=allowed)
    )


def _read_open_meteo(text: str, file: str) -> tuple[list[Weather], int]:
    document = _parse_open_meteo(text, file)
    _check_shape(document, file)
    hourly = document.hourly
    hours = YearOfHours[Weather](file)
    zone = timezone(timedelta(seconds=document.utc_offset_seconds))
    for number, (written, dry_bulb, humidity) in enumerate(
        zip(hourly.time, hourly.temperature_2m, hourly.relative_humidity_2m, strict=True)
    ):
        time = time_of(written, zone)
        if time is None:
            raise _wrong_at(file, "time", number, "this is not a time", written, "ISO 8601")
        if dry_bulb is not None and not _COLDEST_CELSIUS <= dry_bulb <= _HOTTEST_CELSIUS:
            allowed = f"{_COLDEST_CELSIUS:g} to {_HOTTEST_CELSIUS:g} °C"
            raise _wrong_at(file, "temperature_2m", number, "out of range", str(dry_bulb), allowed)
        if humidity is not None and not 0.0 <= humidity <= 100.0:
            raise _wrong_at(file, "relative_humidity_2m", number, "out of range", str(humidity), "0 to 100 %")
        hours.put(time, _weather(dry_bulb, humidity), field=f"hourly.time[{number}]")
    return hours.finish()


def _parse_open_meteo(text: str, file: str) -> _OpenMeteo:
    problem = Problem(file=file, message="this is not what Open-Meteo writes")
    try:
        # NaN and Infinity are no JSON, but some write them: gaps, like null.
        return msgspec.convert(json.loads(text, parse_constant=lambda _: None), _OpenMeteo)
    except json.JSONDecodeError as error:
        place = replace(
            problem, line=error.lineno, column=error.colno, message=f"this is not JSON: {error.msg}"
        )
        raise DocumentError(place) from error
    except (ValueError, RecursionError) as error:
        message = f"{problem.message}: {printable(str(error), longest=300)}"
        raise DocumentError(replace(problem, message=message)) from error


def _check_shape(document: _OpenMeteo, file: str) -> None:
    hourly = document.hourly
    lengths = {len(hourly.time), len(hourly.temperature_2m), len(hourly.relative_humidity_2m)}
    if len(lengths) != 1:
        message = "time, temperature_2m and relative_humidity_2m have different lengths"
        raise DocumentError(Problem(file=file, field="hourly", message=message))
    for name, unit in (("temperature_2m", "°C"), ("relative_humidity_2m", "%")):
        if (written := document.hourly_units.get(name)) != unit:
            field, value = f"hourly_units.{name}", repr(printable(str(written)))
            raise DocumentError(
                Problem(file=file, field=field, message="another unit is needed", value=value, allowed=unit)
            )
    if abs(document.utc_offset_seconds) > _MOST_OFFSET_SECONDS:
        value = str(document.utc_offset_seconds)
        raise DocumentError(
            Problem(file=file, field="utc_offset_seconds", message="no zone is that far off", value=value)
        )


def _wrong_at(file: str, column: str, number: int, message: str, value: str, allowed: str) -> DocumentError:
    field = f"hourly.{column}[{number}]"
    shown_value = repr(printable(value))
    return DocumentError(Problem(file=file, field=field, message=message, value=shown_value, allowed=allowed))


def _read_epw(rows: Iterable[Row], file: str) -> tuple[list[Weather], int]:
    rows = list(rows)
    zone_hours = rows[0].number(_EPW_ZONE, "LOCATION", least=-18.0, most=18.0)
    if zone_hours is None:
        raise rows[0].wrong("the place has no time zone", field="LOCATION")
    zone = timezone(timedelta(hours=zone_hours))
    begin = next((number for number, row in enumerate(rows, 1) if row.cells[0] == "DATA PERIODS"), len(rows))
    data = rows[begin:]
    # Each month of a typical year comes from a year of its own, so the years written say nothing.
    has_leap_day = any([cell.strip().lstrip("0") for cell in row.cells[1:3]] == ["2", "29"] for row in data)
    year = _A_LEAP_YEAR if has_leap_day else _A_COMMON_YEAR
    hours = YearOfHours[Weather](file)
    for row in data:
        hours.put(_epw_time(row, year, zone), _epw_weather(row), line=row.line)
    return hours.finish()


def _epw_time(row: Row, year: int, zone: timezone) -> datetime:
    """Hour 1 is the one that begins at midnight."""
    month, day, hour = row.cell(_EPW_MONTH), row.cell(_EPW_DAY), row.cell(_EPW_HOUR)
    try:
        return datetime(year, int(month), int(day), int(hour) - 1, tzinfo=zone)
    except ValueError:
        raise row.wrong(
            "this is not a time",
            value=f"{month}/{day} {hour}",
            allowed="a month, a day, an hour from 1 to 24",
        ) from None


def _epw_weather(row: Row) -> Weather | None:
    dry_bulb = row.number(
        _EPW_DRY_BULB, "dry bulb", least=_COLDEST_CELSIUS, most=_HOTTEST_CELSIUS, missing=_EPW_NO_DRY_BULB
    )
    humidity = row.number(_EPW_HUMIDITY, "relative humidity", least=0.0, most=110.0, missing=_EPW_NO_HUMIDITY)
    return _weather(dry_bulb, humidity)


def _weather(dry_bulb_celsius: float | None, humidity_percent: float | None) -> Weather | None:
    if dry_bulb_celsius is None or humidity_percent is None:
        return None
    return predict_weather(dry_bulb_celsius, humidity_percent / 100.0)
