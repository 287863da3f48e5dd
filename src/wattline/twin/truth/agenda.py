"""Agenda: what happens next by itself, and when?

Every source of events has a slot with one due time. A time that was set anew leaves its old entry in the
heap; it is passed over when it comes up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush


class Agenda:
    def __init__(self) -> None:
        self._handlers: list[Callable[[float], None]] = []
        self._due_at: list[float] = []
        self._heap: list[tuple[float, int]] = []

    def add_slot(self, handler: Callable[[float], None]) -> int:
        """A source of events; its handler is told the time when one is due."""
        self._handlers.append(handler)
        self._due_at.append(math.inf)
        return len(self._due_at) - 1

    def set(self, slot: int, at: float) -> None:
        if self._due_at[slot] != at:
            self._due_at[slot] = at
            if at < math.inf:
                heappush(self._heap, (at, slot))

    def next_at(self) -> float:
        heap = self._heap
        while heap and self._due_at[heap[0][1]] != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else math.inf

    def happen(self) -> None:
        """Let the next event happen; it is then no longer due."""
        at = self.next_at()
        slot = heappop(self._heap)[1]
        self._due_at[slot] = math.inf
        self._handlers[slot](at)
