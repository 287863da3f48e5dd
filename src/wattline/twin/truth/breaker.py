"""Breaker: does a supply or a rack carry more than it may, and when does it trip?

The rule, for supplies and racks alike. `usable` is what may be carried for hours, `rating` what is printed on
the breaker; a rack states only the first.

- Above usable for longer than `overload_seconds`, or above `overload_factor` × usable at once: a cap
  violation, counted from then on until the load is back under usable. It does not trip yet.
- Above its rating for longer than `overload_seconds`, or above `overload_factor` × rating at once: it trips,
  and carries nothing until people reset it.

A fault that lowers a rating lowers usable with it; a rating of nothing is a feed that is lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wattline.facility import Rack, Supply
from wattline.twin.truth.agenda import Agenda

# Someone has to walk there, find the cause and dare to close it again; assumed.
RESET_SECONDS = 1800.0
# A rack's cap is to its breaker what usable watts are to a supply's.
_RACK_BREAKER = Supply(name="rack", rating_watts=0.0)


@dataclass(slots=True, eq=False)
class Breaker:
    """One supply or rack, and what it carries."""

    number: int
    name: str
    agenda: Agenda
    usable_watts: float
    rating_watts: float
    overload_factor: float
    overload_seconds: float
    parent: Breaker | None = None
    watts: float = 0.0
    cap_watts: float = 0.0  # what it may carry now
    alarm_watts: float = 0.0  # above this, `look`
    left: float = 1.0  # what faults leave of it
    tripped: bool = False
    violates_at: float = math.inf
    hot_at: float = math.inf  # since when it is above its rating
    past_violation_seconds: float = 0.0
    trip_slot: int = -1
    reset_slot: int = -1

    def __post_init__(self) -> None:
        self.cap_watts = self.alarm_watts = self.usable_watts

    def switch(self, *, tripped: bool) -> None:
        self.tripped = tripped
        self._find_cap()

    def derate(self, left: float) -> None:
        self.left = left
        self._find_cap()

    def _find_cap(self) -> None:
        self.cap_watts = 0.0 if self.tripped else self.usable_watts * self.left

    @property
    def is_live(self) -> bool:
        return not self.tripped and self.left > 0.0 and (self.parent is None or self.parent.is_live)

    def violation_seconds(self, at: float) -> float:
        return self.past_violation_seconds + max(0.0, at - self.violates_at)

    def look(self, at: float) -> None:
        """Its load or its rating changed while it is, was or may be overloaded."""
        usable_watts, rating_watts = self.usable_watts * self.left, self.rating_watts * self.left
        if self.watts <= usable_watts or not self.is_live:
            self.past_violation_seconds = self.violation_seconds(at)
            self.violates_at = self.hot_at = math.inf
            self.alarm_watts = usable_watts
            self.agenda.set(self.trip_slot, math.inf)
            return
        self.alarm_watts = -math.inf  # every change counts from here on
        much = self.watts > self.overload_factor * usable_watts
        self.violates_at = min(self.violates_at, at if much else at + self.overload_seconds)
        if self.watts <= rating_watts:
            self.hot_at = math.inf
            self.agenda.set(self.trip_slot, math.inf)
            return
        self.hot_at = min(self.hot_at, at)
        at_once = self.watts > self.overload_factor * rating_watts
        self.agenda.set(self.trip_slot, at if at_once else max(at, self.hot_at + self.overload_seconds))


def supply_breaker(number: int, supply: Supply, parent: Breaker | None, agenda: Agenda) -> Breaker:
    return Breaker(
        number,
        supply.name,
        agenda,
        usable_watts=supply.usable_watts,
        rating_watts=supply.rating_watts,
        overload_factor=supply.overload_factor,
        overload_seconds=supply.overload_seconds,
        parent=parent,
    )


def rack_breaker(number: int, rack: Rack, agenda: Agenda) -> Breaker:
    return Breaker(
        number,
        rack.name,
        agenda,
        usable_watts=rack.cap_watts,
        rating_watts=rack.cap_watts / _RACK_BREAKER.continuous_fraction,
        overload_factor=_RACK_BREAKER.overload_factor,
        overload_seconds=_RACK_BREAKER.overload_seconds,
    )
