"""Weather files: each in its own clock, all in UTC in the end."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shared_data import shared_data
from wattline.errors import DocumentError
from wattline.twin.surroundings.series import hour_of_leap_year
from wattline.twin.surroundings.weather_files import read_weather

PHOENIX = "weather/tmy3_USA_AZ_Phoenix-Sky.Harbor.epw.gz"


def slot(*time: int) -> int:
    return hour_of_leap_year(datetime(*time, tzinfo=UTC).timestamp())  # type: ignore[misc,arg-type]


def open_meteo(**changes: Any) -> dict[str, Any]:
    hourly = {
        "time": ["2024-01-01T00:00", "2024-01-01T01:00"],
        "temperature_2m": [5.0, 6.0],
        "relative_humidity_2m": [80, 90],
    }
    return {
        "utc_offset_seconds": 0,
        "hourly_units": {"temperature_2m": "°C", "relative_humidity_2m": "%"},
        "hourly": hourly | changes.pop("hourly", {}),
    } | changes


def written(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "weather"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def epw(*rows: str, zone: str = "-7.0") -> str:
    return "\n".join([f"LOCATION,Phoenix,AZ,USA,x,1,33.4,-112.0,{zone},337", "DATA PERIODS,1,1", *rows])


@pytest.mark.parametrize("place", ["DE-LU", "US-CAL-CISO", "US-TEX-ERCO"])
def test_a_year_of_open_meteo_is_8784_hours_without_a_gap(place: str) -> None:
    year, missing = read_weather(shared_data(f"weather/openmeteo_2024_{place}.json.gz"))
    assert (len(year), missing) == (8784, 0)


def test_local_times_of_open_meteo_are_moved_by_the_files_own_offset() -> None:
    path = shared_data("weather/openmeteo_2024_US-TEX-ERCO.json.gz")
    raw = json.loads(gzip.decompress(path.read_bytes()))
    year, _ = read_weather(path)
    # Midnight in Texas, at the five hours that the file states, is five in the morning in UTC.
    assert raw["hourly"]["time"][0] == "2024-01-01T00:00"
    assert year[slot(2024, 1, 1, 5)].dry_bulb_celsius == raw["hourly"]["temperature_2m"][0]
    # What the file has beyond the year in UTC is how the year begins.
    assert year[slot(2024, 1, 1, 4)].dry_bulb_celsius == raw["hourly"]["temperature_2m"][-1]


def test_a_typical_year_has_no_leap_day_and_repeats_the_day_before() -> None:
    year, missing = read_weather(shared_data(PHOENIX))
    assert (len(year), missing) == (8784, 0)
    assert year[59 * 24 : 60 * 24] == year[58 * 24 : 59 * 24]
    # The first row, hour 1 of 1 January, begins at midnight in Phoenix: 8.3 °C and 33 %.
    assert year[slot(2024, 1, 1, 7)].dry_bulb_celsius == 8.3


def test_a_typical_day_is_hottest_in_its_own_afternoon() -> None:
    year, _ = read_weather(shared_data(PHOENIX))
    july = [year[slot(2024, 7, day, 0) : slot(2024, 7, day, 0) + 24] for day in range(1, 31)]
    mean = [sum(day[hour].dry_bulb_celsius for day in july) / 30 for hour in range(24)]
    assert mean.index(max(mean)) in (22, 23)  # 15:00 to 17:00 in Phoenix


def test_a_null_or_nan_is_a_gap_of_the_whole_hour(tmp_path: Path) -> None:
    text = json.dumps(open_meteo(hourly={"temperature_2m": [5.0, float("nan")]}))
    year, missing = read_weather(written(tmp_path, text))
    assert "NaN" in text
    assert year[0] == year[1]
    year, also_missing = read_weather(
        written(tmp_path, open_meteo(hourly={"relative_humidity_2m": [80, None]}))
    )
    assert year[0] == year[1]
    assert missing == also_missing == 8784 - 24 - 1


def test_missing_figures_of_an_epw_row_are_gaps(tmp_path: Path) -> None:
    rows = ["2001,1,1,1,0,x,8.3,-6,33", "2001,1,1,2,0,x,99.9,-6,33", "2001,1,1,3,0,x,7.0,-6,999"]
    year, missing = read_weather(written(tmp_path, epw(*rows, zone="0")))
    assert year[0] == year[1] == year[2]
    assert missing == 8784 - 24 - 1


def test_an_epw_file_may_have_a_leap_day(tmp_path: Path) -> None:
    rows = ["2004,2,28,24,0,x,8.3,-6,33", "2004,2,29,1,0,x,12.0,-6,33"]
    year, _ = read_weather(written(tmp_path, epw(*rows, zone="0")))
    assert year[slot(2024, 2, 29, 0)].dry_bulb_celsius == 12.0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("temperature\n12\n", "this is no weather file"),
        ("", "this is no weather file"),
        ('{"hourly": \n {', "weather:2:3: this is not JSON"),
        ("{" + '"a":{' * 100_000, "this is not what Open-Meteo writes"),
        ({"hourly": {}}, "this is not what Open-Meteo writes: Object missing required field"),
        (open_meteo(hourly={"temperature_2m": [1.0, "x"]}), "$.hourly.temperature_2m[1]"),
        (open_meteo(hourly={"temperature_2m": [1.0]}), "have different lengths"),
        (open_meteo(hourly={"temperature_2m": [1.0, 900.0]}), "hourly.temperature_2m[1]: out of range"),
        (open_meteo(hourly={"relative_humidity_2m": [1.0, -1.0]}), "relative_humidity_2m[1]: out of range"),
        (open_meteo(hourly={"time": ["2024-01-01T00:00", "noon"]}), "hourly.time[1]: this is not a time"),
        (open_meteo(hourly={"time": ["2024-01-01T00:00"] * 2}), "hourly.time[1]: this hour has a value"),
        (open_meteo(hourly={"time": ["2024-01-01T00:00", "0001-01-01T00:00"]}), "the year is out of range"),
        (open_meteo(utc_offset_seconds=10**9), "no zone is that far off"),
        (
            open_meteo(hourly_units={"temperature_2m": "°F", "relative_humidity_2m": "%"}),
            "got '°F'; allowed: °C",
        ),
        (epw("2001,1,1,1,0,x,cold,-6,33"), "weather:3:1: dry bulb: this is not a number"),
        (epw("2001,1,1,1,0,x,88,-6,33"), "weather:3:1: dry bulb: the number is out of range"),
        (epw("2001,1,1,25,0,x,8,-6,33"), "weather:3:1: this is not a time, got '1/1 25'"),
        (epw("2001,1,1"), "weather:3:1: the row is too short"),
        (epw("2001,1,1,1,0,x,8,-6,33", zone=""), "LOCATION: the place has no time zone"),
        (epw(), "no hour has a value"),
    ],
)
def test_a_wrong_file_is_told_with_its_place(tmp_path: Path, content: object, said: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_weather(written(tmp_path, content))
    assert said in str(caught.value)
