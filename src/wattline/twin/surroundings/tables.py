"""What did a kilowatt-hour cost and emit, hour by hour? Price and carbon files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wattline.errors import DocumentError, Problem
from wattline.twin.surroundings.files import Row, read_series_text, rows_of, shown
from wattline.twin.surroundings.series import HourlySeries, YearOfHours

_TIMES = ("datetime (utc)", "datetime", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """What a column may be called, best first, and what its numbers are divided by."""

    columns: Mapping[str, float]
    least: float
    most: float


# Life-cycle intensities: what building and fuelling the plants emits belongs to their kilowatt-hours. The
# direct ones that Electricity Maps exports beside them leave that out; nothing is accounted by them.
_CARBON = _Quantity(
    columns={
        "carbon intensity gco₂eq/kwh (lca)": 1.0,
        "carbon intensity gco₂eq/kwh (life cycle)": 1.0,
        "carbon_intensity_avg": 1.0,
        "grams_co2_per_kwh": 1.0,
    },
    least=0.0,
    most=5000.0,
)
_DIRECT_CARBON = _Quantity(columns={"carbon intensity gco₂eq/kwh (direct)": 1.0}, least=0.0, most=5000.0)
_PRICE = _Quantity(
    columns={"price (usd/mwh)": 1000.0, "usd_per_mwh": 1000.0, "usd_per_kwh": 1.0}, least=-1e5, most=1e5
)
_GPU_HOUR_PRICE = _Quantity(columns={"usd_per_gpu_hour": 1.0}, least=0.0, most=1e4)


def read_gpu_hour_price(path: Path) -> tuple[HourlySeries, int]:
    """USD per GPU-hour of a cloud by hour, and how many hours were missing."""
    return _read(path, _GPU_HOUR_PRICE)


def read_price(path: Path) -> tuple[HourlySeries, int]:
    """USD per kWh by hour, below zero where the grid paid, and how many hours were missing."""
    return _read(path, _PRICE)


def read_carbon(path: Path) -> tuple[HourlySeries, int]:
    """Grams of CO2e per kWh by hour, over the life cycle, and how many hours were missing."""
    return _read(path, _CARBON)


def read_direct_carbon(path: Path) -> tuple[HourlySeries, int]:
    """The same of burning fuel alone: what studies of shifting compare by."""
    return _read(path, _DIRECT_CARBON)


def _read(path: Path, quantity: _Quantity) -> tuple[HourlySeries, int]:
    rows = rows_of(read_series_text(path), path)
    header = next(rows, None)
    if header is None:
        raise DocumentError(Problem(file=shown(path), line=1, column=1, message="the file is empty"))
    names = [name.strip().lower() for name in header.cells]
    time_at = _column(header, names, _TIMES)
    value_at = _column(header, names, tuple(quantity.columns))
    divisor = quantity.columns[names[value_at]]
    column = header.cell(value_at)
    hours = YearOfHours[float](shown(path))
    for row in rows:
        value = row.number(value_at, column, least=quantity.least, most=quantity.most)
        hours.put(row.time(time_at), None if value is None else value / divisor, line=row.line)
    values, missing = hours.finish()
    return HourlySeries(values), missing


def _column(header: Row, names: list[str], wanted: tuple[str, ...]) -> int:
    for name in wanted:
        if name in names:
            return names.index(name)
    raise header.wrong("no column has a name that is known", allowed=", ".join(wanted))
