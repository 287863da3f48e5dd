"""Pace: how many micro-batches are computed at once, and how long does a step rest afterwards?

Asked for a fraction of its pace, a run computes fewer micro-batches at a time. Where whole threads cannot
express the fraction (half of one) it rests after each step instead. Neither changes a result: the same
micro-batches are computed, and returned in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

MAX_REST_SECONDS = 60.0

_Batch = TypeVar("_Batch")
_Result = TypeVar("_Result")


def choose_in_flight(most: int, fraction: float) -> int:
    """Rounded down: a limit on power is a limit on its peak."""
    return max(1, math.floor(most * fraction + 1e-9))


def rest_seconds(most: int, fraction: float, worked_seconds: float) -> float:
    """What whole threads leave of the reduction, as idle time in proportion to the time worked."""
    duty = min(1.0, most * fraction / choose_in_flight(most, fraction))
    return min(MAX_REST_SECONDS, worked_seconds * (1 / duty - 1))


class Pace:
    """Runs micro-batches on threads; remembers over one step how wide it could have been."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pool: ThreadPoolExecutor | None = None
        self._threads = 0
        self.step_most = 1
        self.step_in_flight = 1

    def start_step(self) -> None:
        """A step that never calls `map` computes on the script's own thread: one in flight."""
        self.step_most = self.step_in_flight = 1

    def map(
        self, function: Callable[[_Batch], _Result], batches: Sequence[_Batch], fraction: float
    ) -> list[_Result]:
        """The results in the order of the batches."""
        most = max(1, min(self._most, len(batches)))
        in_flight = choose_in_flight(most, fraction)
        self.step_most, self.step_in_flight = most, in_flight
        if in_flight == 1:
            return [function(batch) for batch in batches]
        return list(self._pool_of(in_flight).map(function, batches))

    def close(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _pool_of(self, threads: int) -> ThreadPoolExecutor:
        if self._pool is None or self._threads != threads:
            self.close()
            self._pool = ThreadPoolExecutor(threads, thread_name_prefix="micro-batch")
            self._threads = threads
        return self._pool
