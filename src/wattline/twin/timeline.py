"""How did it go over time? A recorder that a replay can afford, however long it turns out to be.

Time is cut into cells of equal length. Nobody knows in advance how long a replay is, so cells begin short;
when all are used, each two become one and the next are twice as long: never more than `MOST_CELLS` are kept,
and never fewer than half of that once they have filled. What is kept of a cell survives this without error:

- counts and watts as time-weighted means, with their exact highest: each holds from when it is noted until it
  is noted again, as everything in the twin changes at events only;
- the highest temperature that was seen; caps by their lowest;
- dollars and kilograms as differences of running totals, as one reads an electricity meter.

At each moment that the world reaches it asks `due`, one comparison, calls `sample` if it is, and only then
notes what changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from wattline.enums import plain_members
from wattline.twin.layout import Layout
from wattline.units import SECONDS_PER_HOUR

MOST_CELLS = 2000  # even: cells are joined in pairs; more than a picture has columns
_UNSEEN = -np.inf  # the highest of nothing

Column = NDArray[np.float64]


@plain_members
class Count(IntEnum):
    """What is counted over the whole facility."""

    GPUS_BUSY = 0
    GPUS_UP = 1
    JOBS_WAITING = 2
    JOBS_RUNNING = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What is read when a cell ends: running totals by site, in the layout's order."""

    site_usd: tuple[float, ...]
    site_kg: tuple[float, ...]
    place_celsius: tuple[float, ...] = ()  # hottest GPU of each place now; empty: only what is noted counts


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened to the facility, to be shown on the axis of time."""

    name: str
    begins_at: float
    ends_at: float  # infinite where it does not end


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What was recorded: one row for each cell, one column for each count, feed, place or site."""

    layout: Layout
    edges: Column  # Unix times; one more than there are rows
    counts: Column  # by Count
    most_counts: Column
    feed_watts: Column
    feed_peak_watts: Column
    feed_cap_watts: Column
    tightest_watts: Column  # a row for each feed: what it carried, and might, when it was nearest to its cap
    place_celsius: Column  # NaN: nobody looked
    usd_per_hour: Column
    kg_per_hour: Column
    marks: tuple[Mark, ...] = ()

    @property
    def tightness(self) -> Column:
        """How much of its cap each feed carried at most. Within a cell, the highest load and the lowest cap
        may be of different moments: a feed that is lost carries nothing of nothing."""
        share: Column = self.tightest_watts[:, 0] / np.maximum(self.tightest_watts[:, 1], 1.0)
        return share

    @property
    def hours(self) -> Column:
        """How long each cell is."""
        return np.diff(self.edges) / SECONDS_PER_HOUR


class Timeline:
    """The recorder. It trusts the world to come in the order of time, and to sample before it notes."""

    def __init__(
        self, begins_at: float, layout: Layout, *, step_seconds: float = 15.0, marks: Iterable[Mark] = ()
    ) -> None:
        self.layout, self._marks = layout, tuple(marks)
        self._begins_at = begins_at
        self._step_seconds = step_seconds
        self._cells = 0
        self._last_edge = begins_at
        self._ends_at = begins_at + step_seconds
        held = len(Count) + len(layout.feeds)
        self._held = [0.0] * held
        self._since = [begins_at] * held
        self._integral = [0.0] * held
        self._highest = [0.0] * held
        self._cap = [feed.cap_watts for feed in layout.feeds]
        self._lowest_cap = list(self._cap)
        self._tightest = [(0.0, feed.cap_watts) for feed in layout.feeds]
        self._celsius = [_UNSEEN] * len(layout.places)
        self._sampled_at = begins_at
        self._totals = np.zeros(2 * len(layout.sites))
        self._spent = np.zeros(2 * len(layout.sites))
        self._means = np.empty((MOST_CELLS, held))
        self._peaks = np.empty((MOST_CELLS, held))
        self._caps = np.empty((MOST_CELLS, len(layout.feeds)))
        self._heat = np.empty((MOST_CELLS, len(layout.places)))
        self._rates = np.empty((MOST_CELLS, 2 * len(layout.sites)))

    def due(self, at: float) -> bool:
        """Has the cell ended by now?"""
        return at >= self._ends_at

    def note_count(self, count: Count, at: float, value: float) -> None:
        self._hold(count, at, value)

    def note_watts(self, feed: int, at: float, watts: float) -> None:
        """The feed in this column carries so much from now on; what it may carry then is noted before."""
        self._hold(len(Count) + feed, at, watts)
        cap_watts, (most, under) = self._cap[feed], self._tightest[feed]
        if cap_watts > 0.0 and watts * under > most * cap_watts:
            self._tightest[feed] = (watts, cap_watts)

    def note_cap(self, feed: int, watts: float) -> None:
        self._cap[feed] = watts
        self._lowest_cap[feed] = min(self._lowest_cap[feed], watts)

    def note_heat(self, place: int, celsius: float) -> None:
        """A GPU there is so hot now; a cell keeps the highest."""
        if celsius > self._celsius[place]:
            self._celsius[place] = celsius

    def sample(self, at: float, values: Sample) -> None:
        """Close every cell that has ended by now."""
        totals = np.array((*values.site_usd, *values.site_kg))
        elapsed_seconds = at - self._sampled_at
        rates = np.zeros_like(totals)
        if elapsed_seconds > 0:  # what is spent in no time is told with what comes next
            rates = (totals - self._totals) / elapsed_seconds
            self._totals = totals
        while at >= self._ends_at:
            # Where several cells ended unwatched, heat has long settled at what it is now.
            self._note_places(values)
            self._spend(rates, self._ends_at)
            self._close(self._ends_at)
            if self._cells == MOST_CELLS:
                self._join_pairs()
            self._ends_at = self._begins_at + (self._cells + 1) * self._step_seconds
        self._note_places(values)
        self._spend(rates, at)

    def finish(self, at: float, values: Sample) -> None:
        """The replay is over: close the last cell, short as it may be."""
        self.sample(at, values)
        if at > self._last_edge:
            self._close(at)

    def series(self) -> Series:
        """All cells that are closed."""
        rows, counts, sites = self._cells, len(Count), len(self.layout.sites)
        edges = self._begins_at + self._step_seconds * np.arange(rows + 1, dtype=np.float64)
        edges[-1] = self._last_edge
        heat = self._heat[:rows].copy()
        heat[heat == _UNSEEN] = np.nan
        return Series(
            layout=self.layout,
            edges=edges,
            counts=self._means[:rows, :counts].copy(),
            most_counts=self._peaks[:rows, :counts].copy(),
            feed_watts=self._means[:rows, counts:].copy(),
            feed_peak_watts=self._peaks[:rows, counts:].copy(),
            feed_cap_watts=self._caps[:rows].copy(),
            tightest_watts=np.array(self._tightest).reshape(-1, 2),
            place_celsius=heat,
            usd_per_hour=self._rates[:rows, :sites] * SECONDS_PER_HOUR,
            kg_per_hour=self._rates[:rows, sites:] * SECONDS_PER_HOUR,
            marks=self._marks,
        )

    def _hold(self, column: int, at: float, value: float) -> None:
        assert at <= self._ends_at, "a cell has ended: sample first"
        self._integral[column] += self._held[column] * (at - self._since[column])
        self._since[column] = at
        self._held[column] = value
        if value > self._highest[column]:
            self._highest[column] = value

    def _note_places(self, values: Sample) -> None:
        for place, celsius in enumerate(values.place_celsius):
            if celsius > self._celsius[place]:
                self._celsius[place] = celsius

    def _spend(self, rates: Column, until: float) -> None:
        self._spent += rates * (until - self._sampled_at)
        self._sampled_at = until

    def _close(self, at: float) -> None:
        row, seconds = self._cells, at - self._last_edge
        for column, value in enumerate(self._held):
            self._hold(column, at, value)
        self._means[row] = np.array(self._integral) / seconds
        self._peaks[row] = self._highest
        self._caps[row] = self._lowest_cap
        self._heat[row] = self._celsius
        self._rates[row] = self._spent / seconds
        self._integral = [0.0] * len(self._held)
        self._highest = list(self._held)
        self._lowest_cap = list(self._cap)
        self._celsius = [_UNSEEN] * len(self._celsius)
        self._spent = np.zeros_like(self._spent)
        self._cells += 1
        self._last_edge = at

    def _join_pairs(self) -> None:
        half = MOST_CELLS // 2
        self._means[:half] = (self._means[0::2] + self._means[1::2]) / 2
        self._rates[:half] = (self._rates[0::2] + self._rates[1::2]) / 2
        self._peaks[:half] = np.maximum(self._peaks[0::2], self._peaks[1::2])
        self._heat[:half] = np.maximum(self._heat[0::2], self._heat[1::2])
        self._caps[:half] = np.minimum(self._caps[0::2], self._caps[1::2])
        self._cells = half
        self._step_seconds *= 2
