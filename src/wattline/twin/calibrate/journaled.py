"""What did meters say in the runs of a state folder? Its journal tells, without a lease.

Journals keep what changed, not what stood still. A straight line between two records would make a coolant
warm up before its load came, so each series is held until the last moment before it moved.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from pathlib import Path

import numpy as np

from wattline.errors import UnavailableError
from wattline.spec.tree import printable
from wattline.state import Measured
from wattline.store import open_store
from wattline.store.opening import DATABASE_NAME
from wattline.store.steps import read_steps
from wattline.twin.calibrate.series import Array, hold_until_told
from wattline.twin.calibrate.telemetry import BadReadingError, Collector, Telemetry

# Meters are asked at a steady pace, and most often something has moved: this is the pace of the quick ones.
_USUAL_PERCENTILE = 10.0
# Everything is told again long before this, moved or not.
_AWAY_SECONDS = 60.0


def read_journal(home: Path, shown: str) -> Telemetry:
    """Every reading of every step; a bad one is named by the number of its record."""
    if not (home / DATABASE_NAME).is_file():
        raise UnavailableError(f"{shown}: this folder has no {DATABASE_NAME}", hint="name a state folder")
    collector, told_at = Collector(shown), array("d")
    with open_store(home) as store:
        for number, record in read_steps(store.journal):
            for event in record.events:
                if isinstance(event, Measured):
                    told_at.append(event.at)
                    _take(collector, number, event)
    telemetry, asked_at = collector.finish(), _asked_at(np.unique(np.asarray(told_at)))
    held = {key: hold_until_told(series, asked_at) for key, series in telemetry.series.items()}
    return replace(telemetry, series=held)


def _asked_at(told_at: Array) -> Array:
    """When meters were asked: also one period before each answer, unless nobody was there to ask."""
    gaps = np.diff(told_at)
    if len(gaps) == 0:
        return told_at
    period = float(np.percentile(gaps, _USUAL_PERCENTILE))
    nothing_new = (gaps > 1.5 * period) & (gaps < _AWAY_SECONDS)
    return np.union1d(told_at, told_at[1:][nothing_new] - period)


def _take(collector: Collector, number: int, event: Measured) -> None:
    for subject, quantity, value in event.readings:
        if value is None:
            collector.refuse(number, f"the meter of {printable(subject)} said nothing")
            continue
        try:
            collector.take(event.at, subject, quantity, value)
        except BadReadingError as error:
            collector.refuse(number, str(error))
