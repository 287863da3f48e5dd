"""Emulated work: how busy is an attempt, going by the CPU time its real processes used?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

# Long enough that one slow sample does not look like idleness, short beside any thermal time constant.
_SMOOTHING_SECONDS = 0.5


@dataclass(slots=True, eq=False)
class Work:
    """One attempt on the emulated facility."""

    attempt: str
    placement: Mapping[str, int]  # GPUs by node
    cpus: float
    counted_at: float
    cap_fraction: float = 1.0
    utilisation: float = 0.0
    cpu_seconds: float = 0.0
    joules: float = 0.0
    counted: bool = False

    def count(self, cpu_seconds_total: float, at: float) -> None:
        """Take in a cumulative counter; its rate over the CPUs given is how busy the attempt is."""
        elapsed_seconds = at - self.counted_at
        if elapsed_seconds <= 0:
            return  # no time has passed, so there is no rate yet: the next sample has both
        used_seconds = cpu_seconds_total - self.cpu_seconds
        self.cpu_seconds, self.counted_at = cpu_seconds_total, at
        if used_seconds < 0:
            return  # a child ended and took its count with it: begin again from here
        busy = min(1.0, used_seconds / (elapsed_seconds * self.cpus))
        weight = -math.expm1(-elapsed_seconds / _SMOOTHING_SECONDS) if self.counted else 1.0
        self.counted = True
        self.utilisation += weight * (busy - self.utilisation)
