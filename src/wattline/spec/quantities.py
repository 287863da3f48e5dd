"""Field types for documents: a quantity is written with its unit and arrives in its base unit."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from wattline import units

Watts = Annotated[float, BeforeValidator(units.POWER.parse)]
WattsPerMinute = Annotated[float, BeforeValidator(units.RAMP.parse)]
Seconds = Annotated[float, BeforeValidator(units.DURATION.parse)]
BitsPerSecond = Annotated[float, BeforeValidator(units.BANDWIDTH.parse)]
BytesPerSecond = Annotated[float, BeforeValidator(units.THROUGHPUT.parse)]
Bytes = Annotated[float, BeforeValidator(units.SIZE.parse)]
Fraction = Annotated[float, BeforeValidator(units.FRACTION.parse)]
Celsius = Annotated[float, BeforeValidator(units.TEMPERATURE.parse)]
LitresPerMinute = Annotated[float, BeforeValidator(units.FLOW.parse)]
Usd = Annotated[float, BeforeValidator(units.MONEY.parse)]
Kwh = Annotated[float, BeforeValidator(units.ENERGY.parse)]
Kilograms = Annotated[float, BeforeValidator(units.MASS.parse)]
Kelvin = Annotated[float, BeforeValidator(units.TEMPERATURE_DIFFERENCE.parse)]

# Strict: `true` is not 1, and "yes" is not true.
Flag = Annotated[bool, Field(strict=True)]
Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?\Z")


def check_name(value: str) -> str:
    """A name becomes part of paths, labels and commands, so it is plain by construction."""
    for character in value:
        if unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp"}:
            raise ValueError(f"a name holds no control or direction character (U+{ord(character):04X})")
    if _NAME.match(value) is None or ".." in value:
        raise ValueError(
            "a name is 1 to 64 letters, digits, dots, dashes or underscores, and begins and ends with one "
            "of the first two"
        )
    return value


Name = Annotated[str, AfterValidator(check_name)]


def check_relative_path(value: str) -> str:
    """A path inside the folder of its document: nothing absolute, nothing that climbs out."""
    if not value or len(value) > 1024:
        raise ValueError("a path has 1 to 1024 characters")
    if not value.isprintable():
        raise ValueError("a path holds no control or direction character")
    if value.startswith(("/", "~")) or ".." in value.replace("\\", "/").split("/"):
        raise ValueError("a path stays inside the folder of its document")
    return value


RelativePath = Annotated[str, AfterValidator(check_relative_path)]


def parse_day(value: object) -> float:
    """The first moment of a day, UTC, in Unix seconds."""
    try:
        day = datetime.strptime(str(value), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise ValueError("a day is written as 2024-07-01") from error
    if not 1970 <= day.year < 3000:
        raise ValueError("a day lies between 1970 and 2999")
    return day.timestamp()


Day = Annotated[float, BeforeValidator(parse_day)]
