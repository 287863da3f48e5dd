"""Outlook files: what is told of the hours ahead of a site, in a file that somebody keeps up to date?

A table with the columns `hour`, `price` (USD/kWh, below zero where the grid pays) and `carbon` (gCO2e/kWh),
or the same as a list of JSON objects. A folder holds several; what a later name says of an hour counts. An
hour that is missing, or says nothing, is not known: it is never guessed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path

from wattline.errors import DocumentError, Problem, UnavailableError
from wattline.facility import Facility, Site
from wattline.state import OutlookHour
from wattline.twin.outlooking import AHEAD_HOURS, Outlooker
from wattline.twin.surroundings.files import Row, read_series_text, rows_of, shown, time_of
from wattline.units import SECONDS_PER_HOUR

_MOST_FILES = 32  # of a folder, the last by name
_KINDS = (".csv", ".json", ".gz")
_MOST_USD, _MOST_GRAMS = 1000.0, 5000.0  # of a kWh
_UNKNOWN = OutlookHour()

Hours = Mapping[int, OutlookHour]  # by the number of the hour since 1970
Stamp = tuple[tuple[str, int, int], ...]  # of each file its name, when it was written, how long it is


def stamp_of(path: Path) -> Stamp:
    """Another stamp, another content; empty where there is nothing."""
    found = []
    for file in _files(path):
        try:
            seen = file.stat()
        except OSError:
            continue
        found.append((file.name, seen.st_mtime_ns, seen.st_size))
    return tuple(found)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    try:
        named = sorted(file for file in path.iterdir() if file.name.endswith(_KINDS) and file.is_file())
    except OSError as error:
        raise UnavailableError(f"{shown(path)}: cannot be read: {error.strerror}") from error
    return named[-_MOST_FILES:]


def read_outlook(path: Path) -> Hours:
    """All hours that a file or folder tells of."""
    hours: dict[int, OutlookHour] = {}
    for file in _files(path):
        text = read_series_text(file)
        rows = _from_json(text, file) if text.lstrip()[:1] in ("[", "{") else rows_of(text, file)
        hours.update(_read(rows, file))
    if not hours:
        raise DocumentError(Problem(file=shown(path), message="no hour has a value"))
    return hours


def _read(rows: Iterable[Row], file: Path) -> dict[int, OutlookHour]:
    found: dict[int, OutlookHour] = {}
    table = iter(rows)
    header = next(table, None)
    names = [name.strip().lower() for name in header.cells] if header is not None else []
    if "hour" not in names or not {"price", "carbon"}.intersection(names):
        allowed = "hour, and price or carbon or both"
        raise DocumentError(
            Problem(file=shown(file), line=1, column=1, message="the columns are others", allowed=allowed)
        )
    at, price, carbon = (names.index(name) if name in names else -1 for name in ("hour", "price", "carbon"))
    for row in table:
        hour = math.floor(row.time(at).timestamp() / SECONDS_PER_HOUR)
        if hour in found:
            raise row.wrong(
                "this hour has a value already", value=row.cell(at), allowed="one row for each hour"
            )
        usd = row.number(price, "price", least=-_MOST_USD, most=_MOST_USD) if price >= 0 else None
        grams = row.number(carbon, "carbon", least=0.0, most=_MOST_GRAMS) if carbon >= 0 else None
        found[hour] = OutlookHour(grams, usd)
    return found


def _from_json(text: str, file: Path) -> Iterator[Row]:
    """A list of objects as the rows of a table; an object that lacks a name says nothing of it."""
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(Problem(file=shown(file), message=f"this is not JSON: {error}")) from error
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        allowed = '[{"hour": "2026-11-16T14:00Z", "price": 0.08, "carbon": 120}, …]'
        raise DocumentError(Problem(file=shown(file), message="this is no list of hours", allowed=allowed))
    names = ("hour", "price", "carbon")
    yield Row(shown(file), 1, names)
    for number, one in enumerate(listed, start=1):
        cells = tuple("" if one.get(name) is None else str(one[name]) for name in names)
        if time_of(cells[0], UTC) is None:
            raise Row(shown(file), number, cells).wrong("this is not a time", field="hour", value=cells[0])
        yield Row(shown(file), number, cells)


class FiledOutlooker(Outlooker):
    """Tells of each site what its file says; of one that names none, what its document says of every hour."""

    def __init__(self, facility: Facility) -> None:
        super().__init__()
        self._sites: Sequence[Site] = facility.sites
        self.hours: dict[str, Hours] = {}  # by site, as last read

    def expected(self, begins_at: float) -> Mapping[str, Sequence[OutlookHour]]:
        first = round(begins_at / SECONDS_PER_HOUR)
        known = [hour for hours in self.hours.values() for hour in hours if hour >= first]
        ahead = min(AHEAD_HOURS, max(known) - first + 1) if known else 0
        return {site.name: self._hours(site, first, ahead) for site in self._sites}

    def _hours(self, site: Site, first: int, ahead: int) -> list[OutlookHour]:
        if not site.outlook_file:
            return [OutlookHour(site.grams_co2_per_kwh, site.usd_per_kwh)] * ahead
        hours = self.hours.get(site.name, {})
        return [hours.get(hour, _UNKNOWN) for hour in range(first, first + ahead)]
