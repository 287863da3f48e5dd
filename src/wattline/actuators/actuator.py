"""Actuator: what may be turned, and by which hand?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Actuator(Protocol):
    """Turns what belongs to jobs and devices; plant is never among it."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of action it carries out."""
        ...

    @property
    def is_slow(self) -> bool:
        """Whether it talks to machines, so that nobody should wait for it."""
        ...

    def begin(self, attempt: str, nodes: Mapping[str, int]) -> None:
        """An attempt runs on these nodes, each with how many of its GPUs."""
        ...

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        """Cap every GPU of an attempt at this share of its limit; 1 lifts the cap."""
        ...

    def end(self, attempt: str) -> None:
        """An attempt is over: limits are as they were before it."""
        ...

    def close(self) -> None:
        """Nothing is turned any more: limits are as they were."""
        ...
