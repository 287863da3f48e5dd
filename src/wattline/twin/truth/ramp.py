"""Ramp: by how much did the load of a feed rise within any one minute?

The load is a staircase: each step stands until the next. A rise is the load at one moment less the lowest of
the minute before it.
"""

from __future__ import annotations

from collections import deque

RAMP_SECONDS = 60.0


class RampMeter:
    """Follows one feed."""

    __slots__ = ("_at", "_lowest", "_watts", "worst_watts")

    def __init__(self, at: float, watts: float) -> None:
        self._at, self._watts = at, watts
        # Steps by when each ended, only those that are lower than all that came after them.
        self._lowest: deque[tuple[float, float]] = deque([(at, watts)])
        self.worst_watts = 0.0

    def note(self, at: float, watts: float) -> None:
        """The load from now on. What it was for no time at all does not count."""
        if at > self._at:
            self._stand(at)
        self._at, self._watts = at, watts

    def finish(self) -> float:
        """The worst so far, the present load included."""
        self._stand(self._at)
        return self.worst_watts

    def _stand(self, until: float) -> None:
        """The last step stood until now: how much higher it was than the lowest before, and keep it."""
        lowest = self._lowest
        while lowest and lowest[0][0] + RAMP_SECONDS <= self._at:
            lowest.popleft()
        if lowest:
            self.worst_watts = max(self.worst_watts, self._watts - lowest[0][1])
        if until > self._at:
            while lowest and lowest[-1][1] >= self._watts:
                lowest.pop()
            lowest.append((until, self._watts))
