"""Hours ahead: what is it worth to do an hour of a job's work now instead of later?

A price is what one kWh is taken to cost in an hour: carbon, money, or a sum of both, and what the hour's
capacity is worth to others. Hours are counted from now; the hour 0 has begun.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

AS_IT_IS = (1.0,)  # a job of one width: an hour of it is an hour of work


@dataclass(frozen=True, slots=True)
class RankedHours:
    """Hours, the cheapest first; a wide job's second half is an hour of its own, with less work in it."""

    units: tuple[tuple[float, int, float], ...]  # price of an hour of work, hour, work done in it

    @staticmethod
    def of(prices: Sequence[float | None], work_by_width: Sequence[float] = AS_IT_IS) -> RankedHours:
        """`work_by_width`: what each further unit of width adds in an hour, falling.

        An hour without a price is left out: nothing is planned on what nobody knows. Where electricity has
        a negative price, using more of it for the same work is no gain.
        """
        units = [
            (max(price, price / work), hour, work)
            for work in work_by_width
            for hour, price in enumerate(prices)
            if price is not None
        ]
        units.sort(key=_price)
        return RankedHours(tuple(units))

    def price_of_later(self, work_hours: float, until_hour: float) -> float:
        """The dearest hour of work that is needed if all of it is done from the next hour on.

        That is what an hour of work now saves. Infinite where what is left does not fit before `until_hour`.
        """
        left = work_hours
        for price, hour, work in self.units:
            if 0 < hour <= until_hour - 1.0:
                left -= work
                if left <= 1e-9:
                    return price
        return math.inf

    def next_hour_below(self, price: float, until_hour: float) -> int | None:
        """The first hour from the next on that is cheaper than this; None where there is none."""
        hours = [hour for cost, hour, _ in self.units if cost < price and 0 < hour < until_hour]
        return min(hours, default=None)


def _price(unit: tuple[float, int, float]) -> float:
    return unit[0]
