"""Crowding: what is a unit of capacity worth in each hour to come, given who else wants it?

Everybody wants the cleanest hour, and few fit into it. Each hour gets a price on top of its own until what is
asked for in it is what there is: the dual of a schedule that nobody has to write down. Jobs then decide for
themselves, each by its own deadline. Those that have not come yet ask too, as many as came lately; else the
best hours would be promised to whoever is here first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDS = 16
_FIRST_STEP = 0.15  # of the mean price, where twice the capacity is asked for
_STEP_HALVES_AFTER = 5.0  # rounds
_COMING_EVERY_HOURS = 2


@dataclass(frozen=True, slots=True)
class Load:
    """Jobs that ask for capacity: `count` alike, from an hour on, so much work until another hour."""

    from_hour: float
    until_hour: float
    work_hours: float
    count: float


def coming_loads(lately: Sequence[tuple[float, float]], over_hours: float, hours: int) -> list[Load]:
    """What will ask in the next hours if jobs come as they did lately: (work, slack) of each, in hours."""
    if not lately or over_hours <= 0.0:
        return []
    by_work = sorted(lately)
    halves = [half for half in (by_work[: len(by_work) // 2], by_work[len(by_work) // 2 :]) if half]
    loads = []
    for hour in range(1, hours, _COMING_EVERY_HOURS):
        for half in halves:
            work = sum(job[0] for job in half) / len(half)
            slack = sum(job[1] for job in half) / len(half)
            count = len(half) / over_hours * _COMING_EVERY_HOURS
            loads.append(Load(float(hour), hour + work + slack, work, count))
    return loads


def price_crowding(
    prices: Floats,
    capacity: Floats,
    loads: Sequence[Load],
    work_by_width: Sequence[float] = (1.0,),
    begin: Floats | None = None,
) -> Floats:
    """What to add to `prices` (site, hour), where a site has so much capacity in an hour (site, hour).

    `begin` is where to start from: the answer of an hour ago, moved on by an hour, is nearly right.
    """
    extra = np.zeros_like(prices) if begin is None else begin.copy()
    if not loads:
        return np.zeros_like(prices)
    asking = _Asking(loads, prices.shape, work_by_width)
    scale = max(1e-9, float(np.abs(prices).mean()))
    total, kept = np.zeros_like(prices), 0
    for number in range(_ROUNDS):
        asked = asking.units(prices + extra)
        step = _FIRST_STEP * scale / (1.0 + number / _STEP_HALVES_AFTER)
        extra = np.maximum(0.0, extra + step * (asked - capacity) / np.maximum(1e-9, capacity))
        if number >= _ROUNDS // 2:  # prices swing around the answer: their mean is nearer to it
            total += extra
            kept += 1
    return total / kept


class _Asking:
    """What all loads together ask for, each the cheapest for itself."""

    def __init__(self, loads: Sequence[Load], shape: tuple[int, ...], work_by_width: Sequence[float]) -> None:
        self._sites, self._hours = shape
        self._work_by_width = np.asarray(work_by_width)
        rows = np.array([(load.from_hour, load.until_hour, load.work_hours, load.count) for load in loads])
        self._from, self._until, work, self._count = (column[:, None] for column in rows.T)
        # Of work that may also be done after what is looked at, a share belongs here.
        seen = (self._hours - self._from) / np.maximum(1.0, self._until - self._from)
        self._work = work * np.minimum(1.0, seen)

    def units(self, prices: Floats) -> Floats:
        best = prices.argmin(axis=0)
        lowest = prices[best, np.arange(self._hours)]
        cost = np.maximum(lowest, lowest / self._work_by_width[:, None]).ravel()
        order = np.argsort(cost, kind="stable")
        hour, work = order % self._hours, self._work_by_width[order // self._hours]
        may = (hour >= self._from) & (hour + 1.0 <= self._until)
        offered = may * work
        before = np.cumsum(offered, axis=1) - offered
        taken = np.clip(self._work - before, 0.0, offered) / work
        asked = np.bincount(hour, weights=(self._count * taken).sum(axis=0), minlength=self._hours)
        spread = np.zeros((self._sites, self._hours))
        spread[best, np.arange(self._hours)] = asked
        return spread
