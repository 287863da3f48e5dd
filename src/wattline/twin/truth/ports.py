"""What the truth asks of a site's surroundings: weather, tariff and grid, hour by hour."""

from __future__ import annotations

from typing import Protocol

from wattline.facility import Loop

HOUR_SECONDS = 3600.0


class Surroundings(Protocol):
    """Of one site. Every answer is the same for all of a whole hour since the epoch."""

    def supply_celsius(self, loop: Loop, at: float) -> float:
        """What a loop is supplied with, the weather being what it is."""
        ...

    def overhead(self, at: float, it_watts: float) -> float:
        """Facility watts for each IT watt: the PUE of this hour."""
        ...

    def usd_per_kwh(self, at: float) -> float: ...

    def grams_co2_per_kwh(self, at: float) -> float: ...


def next_hour_at(at: float) -> float:
    return (at // HOUR_SECONDS + 1.0) * HOUR_SECONDS
