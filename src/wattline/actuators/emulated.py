"""Emulated actuator: how does a cap reach a process that has no real GPU?

Through the facility: the cap lowers the speed that the facility gives, and the process runs at that duty.
"""

from __future__ import annotations

from typing import Protocol


class PowerCapped(Protocol):
    """The part of an emulated facility that an actuator needs."""

    def set_power_cap(self, attempt: str, fraction: float) -> None: ...


class EmulatedActuator:
    name = "emulated"
    kinds = frozenset({"cap_power"})

    def __init__(self, facility: PowerCapped) -> None:
        self._facility = facility

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        self._facility.set_power_cap(attempt, fraction)
