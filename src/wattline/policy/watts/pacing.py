"""Pacing: of something that may begin only so much at a time, may this begin now, and if not, when?

Each gauge looks back over a span of time: a minute for the ramp of a feed, whatever a site says for starts.
Whoever has to wait is booked for the first moment at which it passes, and nobody who comes later may take
what it counts on then. So a large job is not kept waiting by small ones behind it.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

Begun = tuple[float, int]  # when, and how much: watts, or one start


@dataclass(slots=True)
class Gauge:
    """What has begun lately and what is booked, for one decision."""

    rule: str
    subject: str
    limit: int
    span_seconds: float
    begun: list[Begun] = field(default_factory=list)  # what is booked included, in the order of time
    booked: int = 0  # how many wait

    def add(self, at: float, amount: int) -> None:
        insort(self.begun, (at, amount))

    def within(self, at: float) -> int:
        """What counts at a time: all that began in the span that ends then."""
        span = self.span_seconds
        return sum([amount for began_at, amount in self.begun if began_at <= at < began_at + span])

    def passes(self, at: float, amount: int) -> bool:
        """Whether so much may begin at a time, and all that is booked after it still can."""
        if self.within(at) + amount > self.limit:
            return False
        later = {began_at for began_at, _ in self.begun if at < began_at < at + self.span_seconds}
        return all(self.within(booked_at) + amount <= self.limit for booked_at in later)

    def earliest(self, at: float, amount: int) -> float:
        """The first moment from a time on at which so much may begin; never, where it is over the limit."""
        if amount > self.limit:
            return math.inf
        if self.passes(at, amount):
            return at
        ends = sorted({began_at + self.span_seconds for began_at, _ in self.begun})
        return next(end for end in ends if end > at and self.passes(end, amount))


class Wait(msgspec.Struct, frozen=True):
    """The gauge that holds a job up longest, and until when."""

    gauge: Gauge
    amount: int
    until: float


def find_start(asked: Sequence[tuple[Gauge, int]], at: float) -> Wait | None:
    """What holds it up until the first moment that passes every gauge; None: it passes now."""
    found: Wait | None = None
    until = at
    while True:
        waits = [Wait(gauge, amount, gauge.earliest(until, amount)) for gauge, amount in asked]
        latest = max(waits, key=lambda wait: wait.until, default=None)
        if latest is None or latest.until <= until:
            return found
        found, until = latest, latest.until
        if until == math.inf:
            return found


def add_all(asked: Iterable[tuple[Gauge, int]], at: float) -> None:
    for gauge, amount in asked:
        gauge.add(at, amount)
