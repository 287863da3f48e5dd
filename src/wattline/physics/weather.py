"""Weather: how cold can outside air make water, given its temperature and humidity?"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Magnus over water (WMO guide): relative vapour pressure is exp(17.62 T / (243.12 + T)).
_MAGNUS_SLOPE, _MAGNUS_CELSIUS = 17.62, 243.12

# Where Stull's fit holds; drier air is taken for this dry.
_LEAST_HUMIDITY_PERCENT = 5.0


@dataclass(frozen=True, slots=True)
class Weather:
    """Outside air, as coolers meet it."""

    dry_bulb_celsius: float
    wet_bulb_celsius: float  # the coldest that evaporation makes water
    dew_point_celsius: float


def predict_weather(dry_bulb_celsius: float, humidity_fraction: float) -> Weather:
    """What a thermometer and a hygrometer say about the rest."""
    return Weather(
        dry_bulb_celsius,
        predict_wet_bulb(dry_bulb_celsius, humidity_fraction),
        predict_dew_point(dry_bulb_celsius, humidity_fraction),
    )


def predict_warmed(weather: Weather, kelvin: float) -> Weather:
    """The same air, so much warmer: its water stays, so its wet bulb moves less than its dry bulb."""
    dry_bulb = weather.dry_bulb_celsius + kelvin
    dew_point = min(weather.dew_point_celsius, dry_bulb)
    humidity = math.exp(_magnus(dew_point) - _magnus(dry_bulb))
    return Weather(dry_bulb, predict_wet_bulb(dry_bulb, humidity), dew_point)


def predict_wet_bulb(dry_bulb_celsius: float, humidity_fraction: float) -> float:
    """Stull (2011), at sea level: within 1 K from 5 % to 99 %, except where it is both freezing and dry."""
    percent = max(_LEAST_HUMIDITY_PERCENT, min(100.0, 100.0 * humidity_fraction))
    fitted = (
        dry_bulb_celsius * math.atan(0.151977 * math.sqrt(percent + 8.313659))
        + math.atan(dry_bulb_celsius + percent)
        - math.atan(percent - 1.676331)
        + 0.00391838 * percent * math.sqrt(percent) * math.atan(0.023101 * percent)
        - 4.686035
    )
    return min(dry_bulb_celsius, fitted)


def predict_dew_point(dry_bulb_celsius: float, humidity_fraction: float) -> float:
    """Where this air would begin to wet a pipe."""
    percent = max(_LEAST_HUMIDITY_PERCENT, min(100.0, 100.0 * humidity_fraction))
    exponent = math.log(percent / 100.0) + _magnus(dry_bulb_celsius)
    return _MAGNUS_CELSIUS * exponent / (_MAGNUS_SLOPE - exponent)


def _magnus(celsius: float) -> float:
    return _MAGNUS_SLOPE * celsius / (_MAGNUS_CELSIUS + celsius)
