"""Agenda: which attempt is done next, if nothing changes before?"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping

from wattline.twin.attempts import Attempt


class Agenda:
    """An attempt has one end that counts, the one that was planned last; others are passed over."""

    __slots__ = ("_attempts", "_ends", "_planned")

    def __init__(self, attempts: Mapping[str, Attempt]) -> None:
        self._attempts = attempts  # that run now, by job
        self._ends: list[tuple[float, int, str]] = []
        self._planned = 0

    def plan(self, at: float, attempt: Attempt) -> None:
        self._planned += 1
        attempt.planned = self._planned
        heapq.heappush(self._ends, (at, self._planned, attempt.job))

    def next_at(self) -> float:
        ends, attempts = self._ends, self._attempts
        while ends:
            at, planned, job = ends[0]
            attempt = attempts.get(job)
            if attempt is not None and attempt.planned == planned:
                return at
            heapq.heappop(ends)
        return math.inf

    def due(self, at: float) -> Iterator[Attempt]:
        """Those that are done by now, the first first; what each of them changes is seen by the next."""
        ends, attempts = self._ends, self._attempts
        while ends and ends[0][0] <= at:
            _, planned, job = heapq.heappop(ends)
            attempt = attempts.get(job)
            if attempt is not None and attempt.planned == planned:
                yield attempt
