"""Grid outlooks: what do the files that a facility names say of the hours ahead, and when is that told?

Told as the twin tells it: once an hour, and when a file has changed. A file that is wrong is noticed once,
and what it said before stands until it is too old. Where no site names a file, or nobody shifts, nothing is
read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from wattline.errors import WattlineError
from wattline.facility import Facility
from wattline.spec.policy import Policy
from wattline.state import Event, Noticed, State
from wattline.twin.outlook_files import FiledOutlooker, Stamp, read_outlook, stamp_of
from wattline.units import SECONDS_PER_HOUR

_LOOK_EVERY_SECONDS = 5.0


class GridOutlooks:
    def __init__(self, facility: Facility, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Paths that are not absolute lead into `folder`."""
        self._paths = {site.name: folder / site.outlook_file for site in facility.sites if site.outlook_file}
        self._outlooker = FiledOutlooker(facility)
        self._stamps: dict[str, Stamp | None] = dict.fromkeys(self._paths)
        self._clock, self._looks_at = clock, 0.0
        self._due_at = 0.0

    def hear(self, events: Sequence[Event]) -> None:
        """What came lately says how crowded good hours will be."""
        if self._paths:
            self._outlooker.hear(events)

    def look(self, state: State, policy: Policy, at: float) -> list[Event]:
        """What is to be told now: outlooks of all sites, and what could not be read."""
        if not self._paths or not policy.shifting.is_on:
            return []
        found: list[Event] = []
        is_new = False
        if self._clock() >= self._looks_at:
            self._looks_at = self._clock() + _LOOK_EVERY_SECONDS
            for site in self._paths:
                is_new = self._refresh(site, at, found) or is_new
        if is_new or at >= self._due_at:
            self._due_at = (at // SECONDS_PER_HOUR + 1) * SECONDS_PER_HOUR
            told = self._outlooker.look(state, policy, at)
            found += [outlook for outlook in told if outlook.hours]
        return found

    def _refresh(self, site: str, at: float, found: list[Event]) -> bool:
        """Read a site's file if it is another than it was; whether it says something now."""
        path = self._paths[site]
        try:
            stamp = stamp_of(path)
            if stamp == self._stamps[site]:
                return False
            self._stamps[site] = stamp
            self._outlooker.hours[site] = read_outlook(path)
        except WattlineError as error:
            first = str(error).splitlines()[0]
            found.append(
                Noticed(at=at, subject=site, say=f"its outlook is passed over: {first}", source="file")
            )
            return False
        return True
