"""Quantities as people write them: the only place that parses "6.5kW".

Inside, every quantity is a plain float in its base unit (watts, seconds, bits per second, bytes,
degrees Celsius, fractions of one, dollars) and the unit is the last word of the variable's name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_NUMBER = r"[+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_SPELLING = re.compile(rf"\s*({_NUMBER})\s*([^\d\s].*?)?\s*\Z")


class QuantityError(ValueError):
    """The text is not a quantity of this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One physical kind: its spellings, each with what it is worth in the base unit, and its bounds."""

    name: str
    worth: Mapping[str, float]
    most: float
    least: float = 0.0
    example: str
    bare: bool = False  # a number without a unit is clear enough (fractions, dollars)

    def parse(self, value: object) -> float:
        """Read a quantity, or say what is wrong with it and what would be right."""
        number, unit = self._split(value)
        if unit is None:
            if not self.bare and number != 0:
                raise QuantityError(f"a {self.name} needs a unit, such as {self.example}")
            amount = number
        elif unit in self.worth:
            worth = self.worth[unit]
            # 70 / 100 is 0.7; 70 × 0.01 is not.
            amount = number * worth if worth >= 1 else number / round(1 / worth)
        else:
            known = ", ".join(self.worth)
            raise QuantityError(f"unknown unit {unit!r} for a {self.name}; known units: {known}")
        if not self.least <= amount <= self.most:
            bounds = f"{self.least:g} and {self.most:g} {self.base}".rstrip()
            raise QuantityError(f"a {self.name} lies between {bounds}, such as {self.example}")
        return amount

    @property
    def base(self) -> str:
        """The spelling that is worth one."""
        return next((unit for unit, worth in self.worth.items() if worth == 1.0), "")

    def _split(self, value: object) -> tuple[float, str | None]:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise QuantityError(f"a {self.name} is written as {self.example}")
        if isinstance(value, str):
            if len(value) > 64:
                raise QuantityError(f"a {self.name} is written as {self.example}")
            match = _SPELLING.match(value)
            if match is None:
                raise QuantityError(f"a {self.name} is written as {self.example}")
            number, unit = float(match[1]), match[2]
        else:
            try:
                number, unit = float(value), None
            except OverflowError:
                number, unit = math.inf, None
        if not math.isfinite(number):
            raise QuantityError(f"a {self.name} is a finite number")
        return number, unit


POWER = Kind(
    name="power",
    worth={"W": 1.0, "kW": 1e3, "MW": 1e6, "GW": 1e9},
    most=1e10,
    example="6.5kW",
)
RAMP = Kind(
    name="ramp",
    worth={"W/min": 1.0, "kW/min": 1e3, "MW/min": 1e6, "W/s": 60.0, "kW/s": 6e4, "MW/s": 6e7},
    most=1e12,
    example="30kW/min",
)  # in watts per minute
DURATION = Kind(
    name="duration",
    worth={"s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0},
    most=3.2e9,
    example="6h",
)
BANDWIDTH = Kind(
    name="bandwidth",
    worth={
        "bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9, "Tbps": 1e12,
        "bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12,
    },
    most=1e16,
    example="40Gbps",
)  # fmt: skip
THROUGHPUT = Kind(
    name="throughput",
    worth={"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12},
    most=1e15,
    example="10GB/s",
)
SIZE = Kind(
    name="size",
    worth={
        "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
        "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3, "TiB": 1024.0**4,
    },
    most=1e19,
    example="80GB",
)  # fmt: skip
FRACTION = Kind(name="share", worth={"": 1.0, "%": 0.01}, most=1.0, example="70%", bare=True)
TEMPERATURE = Kind(
    name="temperature",
    worth={"C": 1.0, "°C": 1.0},
    least=-60.0,
    most=200.0,
    example="25C",
)
TEMPERATURE_DIFFERENCE = Kind(
    name="temperature difference", worth={"K": 1.0}, most=200.0, example="10K", bare=True
)
FLOW = Kind(name="flow", worth={"L/min": 1.0, "m3/h": 1000.0 / 60.0}, most=1e6, example="120L/min")
MONEY = Kind(name="price", worth={"USD": 1.0}, least=-1e6, most=1e12, example="0.12", bare=True)
ENERGY = Kind(
    name="energy",
    worth={"kWh": 1.0, "Wh": 1e-3, "MWh": 1e3, "GWh": 1e6},
    most=1e12,
    example="500kWh",
    bare=True,
)
MASS = Kind(name="mass", worth={"kg": 1.0, "g": 1e-3, "t": 1e3}, most=1e12, example="250kg", bare=True)

_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_CLOCK = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))

SECONDS_PER_HOUR = 3600.0
JOULES_PER_KWH = 3.6e6


def _scaled(amount: float, unit: str) -> str:
    for factor, prefix in _SCALES:
        if abs(amount) >= 0.9995 * factor:  # three digits round up from here
            return f"{amount / factor:.3g} {prefix}{unit}"
    return f"{amount:.3g} {unit}"


def format_watts(watts: float) -> str:
    return _scaled(watts, "W")


def format_bits_per_second(bits_per_second: float) -> str:
    return _scaled(bits_per_second, "bit/s")


def format_bytes(size_bytes: float) -> str:
    return _scaled(size_bytes, "B")


def format_seconds(seconds: float) -> str:
    """A duration as one would say it: "6 h", "14 min", "3.2 s"."""
    for factor, unit in _CLOCK:
        if abs(seconds) >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def format_share(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def format_celsius(celsius: float) -> str:
    return f"{celsius:.1f} °C"


def _digits(number: float) -> str:
    """Three that count, and all of those before the point: 1.98, 19.8, 1,976."""
    return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"


_FORMATS: dict[str, Callable[[float], str]] = {
    "watts": format_watts,
    "seconds": format_seconds,
    "bits_per_second": format_bits_per_second,
    "bytes_per_second": lambda rate: _scaled(rate, "B/s"),
    "bytes": format_bytes,
    "celsius": format_celsius,
    "fraction": format_share,
    "minutes": lambda minutes: format_seconds(60 * minutes),
    "hours": lambda hours: f"{_digits(hours)} h",
    "usd": lambda usd: f"{usd:,.2f} USD",
    "kwh": lambda kwh: f"{_digits(kwh)} kWh",
    "kg": lambda kg: f"{_digits(kg)} kg",
    "gpus": lambda gpus: f"{gpus:g} GPU" + ("" if gpus == 1 else "s"),
    "gpu_hours": lambda hours: f"{_digits(hours)} GPU-hours",
}
_LONGEST_FIRST = sorted(_FORMATS, key=len, reverse=True)


def unit_of(name: str) -> str:
    """The unit that a name ends with, or an empty string: "short_by_watts" gives "watts"."""
    return next((unit for unit in _LONGEST_FIRST if name.endswith(unit)), "")


def format_named(name: str, value: float) -> str:
    """Write a number by the unit its name ends with; a bare number otherwise."""
    unit = unit_of(name)
    return _FORMATS[unit](value) if unit else f"{value:g}"
