"""Actuator: what may be turned, and by which hand?"""

from __future__ import annotations

from typing import Protocol


class Actuator(Protocol):
    """Turns what belongs to jobs and devices; plant is never among it."""

    @property
    def name(self) -> str: ...

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of action it carries out."""
        ...

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        """Cap every GPU of an attempt at this share of its limit; 1 lifts the cap."""
        ...
