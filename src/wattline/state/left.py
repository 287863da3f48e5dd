"""Left: what is free of each resource, where only a share of its cap may be used?

The same as that share less `Snapshot.used`, in one go and kept: placement asks for it more than for anything
else.
"""

from __future__ import annotations

from collections.abc import Sequence

from wattline.state.snapshot import Snapshot


class Left(dict[int, float]):
    """By resource, worked out when it is asked for; never below zero."""

    __slots__ = ("_laid", "_ledger", "_max_age_seconds", "_shares", "_snapshot", "_vouched")

    def __init__(self, snapshot: Snapshot, shares: Sequence[float], max_age_seconds: float) -> None:
        self._snapshot, self._shares, self._max_age_seconds = snapshot, shares, max_age_seconds
        self._ledger, self._laid, self._vouched = snapshot.books(max_age_seconds)

    def __missing__(self, resource: int) -> float:
        ledger = self._ledger
        usable = ledger.caps[resource] * self._shares[resource]
        used = float(ledger.promised[resource])
        laid = self._laid.get(resource, 0) if self._laid else 0
        if laid:
            used += laid
        if ledger.metered[resource]:
            vouched = self._vouched and resource not in ledger.unvouched
            if vouched or self._snapshot.is_read(resource, self._max_age_seconds):
                drawn = ledger.drawn[resource] + laid if laid < 0 else ledger.drawn[resource]
            else:
                drawn = float(self._snapshot.plant.resources[resource].worst)
            if drawn > used:
                used = drawn
        left = self[resource] = usable - used if usable > used else 0.0
        return left
