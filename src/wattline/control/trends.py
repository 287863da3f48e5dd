"""Trends: what did the meters of racks, feeds and loops say some minutes ago, by the steps since?"""

from __future__ import annotations

from collections.abc import Iterable

from wattline.control.record import StepRecord
from wattline.state import Measured

SPAN_SECONDS = 600.0
_DRAWN = frozenset({"rack_watts", "supply_watts", "loop_heat_watts"})


def earlier_readings(steps: Iterable[StepRecord], at: float) -> dict[str, tuple[float, float]]:
    """Of each thing the first reading within the last ten minutes, and when: what a rise is counted from."""
    found: dict[str, tuple[float, float]] = {}
    for record in steps:
        for event in record.events:
            if isinstance(event, Measured) and event.at >= at - SPAN_SECONDS:
                for subject, quantity, value in event.readings:
                    if quantity in _DRAWN and value is not None:
                        known = found.get(subject)
                        if known is None or event.at < known[1]:
                            found[subject] = (value, event.at)
    return found
