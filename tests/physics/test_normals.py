"""Normals: a year made of two means keeps to them, and its air stays air."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from wattline.facility import Normals
from wattline.physics.normals import predict_year
from wattline.physics.weather import Weather

NORTH = Normals(january_celsius=-9.0, july_celsius=16.0, swing_kelvin=8.0, humidity=0.7, warmest_hour=13)
SOUTH = replace(NORTH, january_celsius=23.0, july_celsius=12.0)


def a_day(normals: Normals, day: int) -> list[Weather]:
    return predict_year(normals)[24 * day : 24 * (day + 1)]


@pytest.mark.parametrize("normals", [NORTH, SOUTH])
def test_the_means_of_january_and_july_are_those_that_were_said(normals: Normals) -> None:
    for day, celsius in ((15, normals.january_celsius), (198, normals.july_celsius)):
        assert fmean(hour.dry_bulb_celsius for hour in a_day(normals, day)) == pytest.approx(
            celsius, abs=0.01
        )


def test_a_day_is_warmest_at_its_hour_and_swings_as_far_as_was_said() -> None:
    hours = [hour.dry_bulb_celsius for hour in a_day(NORTH, 198)]
    assert hours.index(max(hours)) == 13
    assert max(hours) - min(hours) == pytest.approx(8.0)


def test_a_night_gets_no_colder_than_its_dew_point_and_a_day_keeps_its_water() -> None:
    damp = replace(NORTH, humidity=0.9)
    hours = a_day(damp, 198)
    assert max(hour.dew_point_celsius for hour in hours) == pytest.approx(
        min(hour.dew_point_celsius for hour in hours)
    )
    assert min(hour.dry_bulb_celsius for hour in hours) == pytest.approx(hours[0].dew_point_celsius)
    assert all(hour.wet_bulb_celsius <= hour.dry_bulb_celsius for hour in predict_year(damp))


def test_every_hour_of_a_leap_year_is_there() -> None:
    assert len(predict_year(NORTH)) == 366 * 24
