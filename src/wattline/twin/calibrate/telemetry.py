"""Telemetry: which readings did a file or a journal hold, and what in it could not be used?"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from wattline.errors import DocumentError, Problem
from wattline.spec.tree import printable
from wattline.twin.calibrate.series import Series, build_series

# Other names for the same quantity: what NVML calls busy is what curves are drawn over.
_SAME = {"gpu_busy_fraction": "gpu_utilisation"}
QUANTITIES = frozenset(
    {
        "gpu_watts",
        "gpu_celsius",
        "gpu_limit_watts",
        "gpu_utilisation",
        "coolant_celsius",
        "supply_celsius",
        "flow_fraction",
        "loop_heat_watts",
        "rack_watts",
        "node_watts",
        "throughput",
    }
)
MOST_READINGS = 5_000_000
MOST_SERIES = 200_000
_LONGEST_NAME = 200
_MOST_TOLD = 10
# From 2001 to 2286 in seconds; the same moments in milliseconds lie far above.
_LATEST_SECONDS = 1e10


@dataclass(frozen=True, slots=True)
class BadLine:
    line: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """All series by subject and quantity, and an account of the rest."""

    source: str
    series: Mapping[tuple[str, str], Series]
    readings: int
    bad: int = 0
    bad_lines: tuple[BadLine, ...] = ()  # the first of them
    repeated: int = 0
    unused: Mapping[str, int] = field(
        default_factory=dict
    )  # quantities that say nothing about what is fitted

    @property
    def begins_at(self) -> float | None:
        return min((float(series.at[0]) for series in self.series.values()), default=None)

    @property
    def ends_at(self) -> float | None:
        return max((float(series.at[-1]) for series in self.series.values()), default=None)


class BadReadingError(ValueError):
    """One reading cannot be used; the rest may."""


class Collector:
    """Takes readings one by one, in any order, within bounds."""

    def __init__(self, source: str) -> None:
        self._source = printable(source, longest=1000)
        self._taken: dict[tuple[str, str], tuple[array[float], array[float]]] = {}
        self._readings = 0
        self._bad = 0
        self._bad_lines: list[BadLine] = []
        self._unused: dict[str, int] = {}

    def take(self, at: float, subject: str, quantity: str, value: float) -> None:
        quantity = _SAME.get(quantity, quantity)
        if quantity not in QUANTITIES:
            self._leave(quantity)
            return
        if not (math.isfinite(value) and math.isfinite(at)):
            raise BadReadingError("time and value are finite numbers")
        if not 0.0 <= at <= _LATEST_SECONDS:
            raise BadReadingError(f"time is in seconds since 1970, got {at:.6g}; milliseconds?")
        columns = self._taken.get((subject, quantity))
        if columns is None:
            if not subject or len(subject) > _LONGEST_NAME or not subject.isprintable():
                raise BadReadingError(f"a subject has 1 to {_LONGEST_NAME} printable characters")
            if len(self._taken) >= MOST_SERIES:
                raise self._too_much(f"more than {MOST_SERIES:,} meters")
            columns = self._taken[subject, quantity] = (array("d"), array("d"))
        self._readings += 1
        if self._readings > MOST_READINGS:
            raise self._too_much(f"more than {MOST_READINGS:,} readings")
        columns[0].append(at)
        columns[1].append(value)

    def refuse(self, line: int, message: str) -> None:
        self._bad += 1
        if len(self._bad_lines) < _MOST_TOLD:
            self._bad_lines.append(BadLine(line, message))

    def finish(self) -> Telemetry:
        """All that was taken; a source in which every line is bad is not telemetry."""
        if self._bad and not self._taken and not self._unused:
            problems = [
                Problem(file=self._source, line=bad.line, column=1, message=bad.message)
                for bad in self._bad_lines
            ]
            raise DocumentError(*problems)
        series, repeated = {}, 0
        for key, (at, values) in self._taken.items():
            series[key], again = build_series(at, values)
            repeated += again
        return Telemetry(
            source=self._source,
            series=series,
            readings=self._readings,
            bad=self._bad,
            bad_lines=tuple(self._bad_lines),
            repeated=repeated,
            unused=dict(sorted(self._unused.items())),
        )

    def _leave(self, quantity: str) -> None:
        name = printable(quantity, longest=40)
        if name not in self._unused and len(self._unused) >= 100:
            name = "others"
        self._unused[name] = self._unused.get(name, 0) + 1

    def _too_much(self, message: str) -> DocumentError:
        allowed = "cut it to the span, or to the GPUs, that matter"
        return DocumentError(Problem(file=self._source, message=message, allowed=allowed))
