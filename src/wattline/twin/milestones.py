"""Milestones: what does a wait tell of its forecast before it is over?

Who stands a hundredth in line and has seen fifty start has waited for half of it, about. Where lines take
days, what is learnt of a forecast only when its wait ends comes days too late.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterator

from wattline.twin.lines import Line

_SHARES = (0.25, 0.5, 0.75)


class Milestones:
    """Told who comes, who was told a time, and who leaves their line; lines are taken to go in order."""

    def __init__(self) -> None:
        self._came: Counter[Line] = Counter()
        self._left: Counter[Line] = Counter()
        self._places: dict[str, tuple[Line, int]] = {}  # of those who wait: the how manieth of all who came
        # By line: how many must have left, who has then waited for what share of it.
        self._due: dict[Line, list[tuple[int, str, float]]] = {}

    def come(self, job: str, line: Line) -> None:
        self._came[line] += 1
        self._places[job] = (line, self._came[line])

    def tell(self, job: str) -> None:
        """A job was told a time, for the first time."""
        line, number = self._places.get(job, (None, 0))
        ahead = number - self._left[line]
        for share in _SHARES if ahead > 1 else ():
            leaving = math.ceil(ahead * share)
            due = self._due.setdefault(line, [])
            heapq.heappush(due, (self._left[line] + leaving, job, leaving / ahead))

    def leave(self, job: str) -> Iterator[tuple[str, float]]:
        """A job has started or gone; who has waited for what share of their wait by that."""
        line, _ = self._places.pop(job, (None, 0))
        if line is None:
            return
        self._left[line] += 1
        due = self._due.get(line, [])
        while due and due[0][0] <= self._left[line]:
            _, other, share = heapq.heappop(due)
            if other in self._places:
                yield other, share
