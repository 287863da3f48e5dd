"""Turns: of all queues, whose first is next?

Each team has a line of its own, in order; teams take turns by their standing, which changes only for the one
that was just given something. So whoever is passed over costs one step in a line, however many wait.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable
from typing import Generic, TypeVar

Queued = TypeVar("Queued")

# What of a class comes after its team's standing; how urgent a job is, since when, how much it asks, who.
Order = tuple[float, float, float, float, str]


class _Line(Generic[Queued]):
    __slots__ = ("before_all", "entries", "next", "project")

    def __init__(self, before_all: float, project: str) -> None:
        self.before_all, self.project = before_all, project
        self.entries: list[tuple[Order, Queued]] = []
        self.next = 0


class Turns(Generic[Queued]):
    """Good for one decision; `standing` says where a team stands by now."""

    def __init__(self, standing: Callable[[str], float] | None) -> None:
        self._standing = standing
        self._lines: dict[tuple[float, str], _Line[Queued]] = {}
        self._heap: list[tuple[float, float, Order, _Line[Queued]]] | None = None
        self._current: _Line[Queued] | None = None

    def add(self, before_all: float, project: str, order: Order, queued: Queued) -> None:
        """Put somebody in line: before the first turn anybody, after that one of whoever's turn it was."""
        key = (before_all, project if self._standing is not None else "")
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(*key)
        if self._heap is None:
            line.entries.append((order, queued))
        else:
            insort(line.entries, (order, queued), lo=line.next)

    def next(self) -> Queued | None:
        """Who is next; None where nobody is left."""
        if self._heap is None:
            self._heap = []
            for line in self._lines.values():
                line.entries.sort()
                self._push(line)
        if self._current is not None:
            self._push(self._current)
            self._current = None
        if not self._heap:
            return None
        line = self._current = heapq.heappop(self._heap)[3]
        line.next += 1
        return line.entries[line.next - 1][1]

    def _push(self, line: _Line[Queued]) -> None:
        if line.next < len(line.entries) and self._heap is not None:
            standing = 0.0 if self._standing is None else self._standing(line.project)
            heapq.heappush(self._heap, (line.before_all, standing, line.entries[line.next][0], line))
