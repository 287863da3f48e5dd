"""Emulated actuator: how does a cap reach a process that has no real GPU?

Through the facility: the cap lowers the speed that the facility gives, and the process runs at that duty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class PowerCapped(Protocol):
    """The part of an emulated facility that an actuator needs."""

    def set_power_cap(self, attempt: str, fraction: float) -> None: ...


class EmulatedActuator:
    name = "emulated"
    kinds = frozenset({"cap_power"})
    is_slow = False

    def __init__(self, facility: PowerCapped) -> None:
        self._facility = facility

    def begin(self, attempt: str, nodes: Mapping[str, int]) -> None:
        """The facility knows who is on its nodes."""

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        self._facility.set_power_cap(attempt, fraction)

    def end(self, attempt: str) -> None:
        """A cap leaves with its attempt."""

    def close(self) -> None: ...
