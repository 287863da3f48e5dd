"""The window: which stretch of time is looked at, and in which steps?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from wattline.errors import UsageError

_STEPS_SECONDS = (60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 21600.0)
_MOST_STEPS = 1100  # a week in steps of ten minutes
LONGEST_SECONDS = 92 * 86400.0
SHORTEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """From `begins_at` in `steps` of `step_seconds`, by Slurm's clock."""

    begins_at: float
    step_seconds: float
    steps: int

    @property
    def ends_at(self) -> float:
        return self.begins_at + self.steps * self.step_seconds

    @property
    def seconds(self) -> float:
        return self.steps * self.step_seconds

    def overlap_seconds(self, begins_at: float, ends_at: float) -> float:
        """How much of a span is inside."""
        return max(0.0, min(ends_at, self.ends_at) - max(begins_at, self.begins_at))

    def spread(self, begins_at: float, ends_at: float) -> tuple[slice, NDArray[np.float64]]:
        """The steps that a span touches, and the share of each that it takes."""
        first = max(0.0, (begins_at - self.begins_at) / self.step_seconds)
        last = min(float(self.steps), (ends_at - self.begins_at) / self.step_seconds)
        if not last > first:
            return slice(0, 0), np.zeros(0)
        touched = slice(math.floor(first), math.ceil(last))
        edges = np.arange(touched.start, touched.stop + 1, dtype=float)
        return touched, np.minimum(edges[1:], last) - np.maximum(edges[:-1], first)


def window_before(ends_at: float, seconds: float) -> Window:
    """The last so many seconds, in steps that are few enough to hold and to ask for."""
    if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
        raise UsageError(
            f"--since: from 10 minutes to 92 days, got {seconds:g} s", hint="such as --since 7d or --since 6h"
        )
    step = next(step for step in _STEPS_SECONDS if seconds / step <= _MOST_STEPS)
    steps = math.ceil(seconds / step - 1e-9)
    return Window(begins_at=ends_at - steps * step, step_seconds=step, steps=steps)


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
