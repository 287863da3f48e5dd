"""Normals: what is the weather of an hour, where only the means of January and July are known?"""

from __future__ import annotations

import math

from wattline.facility import Normals
from wattline.physics.weather import Weather, predict_dew_point, predict_warmed, predict_weather

_HOURS_A_DAY = 24
_DAYS_A_YEAR = 366
_MID_JANUARY = 15  # days into the year; half a year later it is the middle of July


def predict_year(normals: Normals) -> list[Weather]:
    """The weather of all hours of a leap year. A day keeps its water: only what is dry swings in full."""
    return [_hour(normals, day, hour) for day in range(_DAYS_A_YEAR) for hour in range(_HOURS_A_DAY)]


def _hour(normals: Normals, day: int, hour: int) -> Weather:
    season = math.cos(math.tau * (day - _MID_JANUARY) / _DAYS_A_YEAR)
    middle = (normals.january_celsius + normals.july_celsius) / 2.0
    mean_celsius = middle + season * (normals.january_celsius - normals.july_celsius) / 2.0
    swing = normals.swing_kelvin / 2.0 * math.cos(math.tau * (hour - normals.warmest_hour) / _HOURS_A_DAY)
    humidity = normals.humidity
    # A night that cools to its dew point stays there: the rest of its swing would be water falling out.
    swing = max(swing, predict_dew_point(mean_celsius, humidity) - mean_celsius)
    return predict_warmed(predict_weather(mean_celsius, humidity), swing)
