"""Lines: how long will the next in line wait, by how fast its line has moved?

Jobs of one shape stand in one line, and start in its order. If the last hundred of them took an hour to
start, the hundredth in line may start in an hour. That needs no run of the twin, so it is known for every job
at once, however long the queue; what it does not know of, its errors teach (`recalibrating.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable

from wattline.twin.recalibrating import P90_OVER_P50, Wait

Line = Hashable  # the shape of a job

# Of a line, the starts that are remembered: more than anybody stands behind.
_MOST_STARTS = 50_000
_LONG_SECONDS = 86400.0
# What the last so many starts say weighs this much beside the pace of the last day; chosen with what
# recalibrating.py assumes.
_WEIGHT = 0.5
_LEAST_SECONDS = 1.0


class Lines:
    """Told of starts, in the order of time."""

    def __init__(self) -> None:
        self._starts: dict[Line, list[float]] = {}

    def begin(self, line: Line, at: float) -> None:
        starts = self._starts.setdefault(line, [])
        starts.append(at)
        if len(starts) >= 2 * _MOST_STARTS:
            del starts[:_MOST_STARTS]

    def expect(self, line: Line, place: int, at: float, first_since: float) -> Wait:
        """Of the job at this place, 1 for the first. A line that never moved takes as long again for each."""
        starts = self._starts.get(line)
        if starts is None:
            seconds = place * (at - first_since)
        else:
            seconds = _as_many(starts, place, at) ** _WEIGHT * _as_fast(starts, place, at) ** (1.0 - _WEIGHT)
        seconds = max(_LEAST_SECONDS, seconds)
        return Wait(seconds, seconds * P90_OVER_P50)


def _as_many(starts: list[float], place: int, at: float) -> float:
    """How long the last so many starts took."""
    known = min(place, len(starts))
    return max(_LEAST_SECONDS, at - starts[-known]) * place / known


def _as_fast(starts: list[float], place: int, at: float) -> float:
    """How long so many starts take at the pace of the last day, or since the first of them."""
    seconds = max(_LEAST_SECONDS, min(_LONG_SECONDS, at - starts[0]))
    return seconds * place / max(1, len(starts) - bisect_left(starts, at - seconds))
