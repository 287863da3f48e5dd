"""Fault schedule: which faults are active now, and when does that change next?

Times are seconds since the facility began.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wattline.errors import DocumentError, Problem
from wattline.spec.faults import Fault
from wattline.telemetry.naming import find_subjects


@dataclass(slots=True)
class _Entry:
    fault: Fault
    kind: str
    subject: str
    begins: float = math.inf
    ends: float = math.inf
    fired: bool = False


class FaultSchedule:
    """Faults in the order they fire: by time, or by a step that some phase reaches."""

    def __init__(self, faults: Sequence[Fault], subjects: Mapping[str, Sequence[str]]) -> None:
        self.fired: list[tuple[Fault, float]] = []
        self._entries = [_entry(fault, number, subjects) for number, fault in enumerate(faults)]
        self._now = 0.0

    def reach_step(self, phase: str, step: int) -> bool:
        """Begin what waits for this step, or for one before it; true where that changes anything."""
        for entry in self._entries:
            moment = entry.fault.at
            waits = entry.begins == math.inf and moment.phase == phase
            if waits and moment.step is not None and step >= moment.step:
                _begin(entry, self._now)
        return self.move_to(self._now)

    def move_to(self, now: float) -> bool:
        """Fire what has begun by now; true where the set of active faults may have changed."""
        before, self._now = self._now, now
        due = [entry for entry in self._entries if not entry.fired and entry.begins <= now]
        for entry in sorted(due, key=lambda entry: entry.begins):
            entry.fired = True
            self.fired.append((entry.fault, entry.begins))
        return bool(due) or any(before < entry.ends <= now for entry in self._entries)

    def next_change(self) -> float:
        """When the next known beginning or end comes; infinite where none is known."""
        moments = (moment for entry in self._entries for moment in (entry.begins, entry.ends))
        return min((moment for moment in moments if moment > self._now), default=math.inf)

    def active(self) -> list[Fault]:
        return [entry.fault for entry in self._active()]

    def effects(self, kind: str, subject: str, effect: Callable[[Fault], float | None]) -> list[float]:
        """What the active faults of one thing say about it."""
        told = (
            effect(entry.fault) for entry in self._active() if (entry.kind, entry.subject) == (kind, subject)
        )
        return [value for value in told if value is not None]

    def _active(self) -> list[_Entry]:
        return [entry for entry in self._entries if entry.fired and entry.begins <= self._now < entry.ends]


def _begin(entry: _Entry, at: float) -> None:
    entry.begins = at
    entry.ends = math.inf if entry.fault.lasts is None else at + entry.fault.lasts


def _entry(fault: Fault, number: int, subjects: Mapping[str, Sequence[str]]) -> _Entry:
    kind = next(kind for kind in ("loop", "supply", "rack", "link") if getattr(fault, kind) is not None)
    found = find_subjects(fault.subject, subjects[kind])
    if len(found) != 1:
        raise DocumentError(
            Problem(
                file="faults",
                field=f"faults[{number}].{kind}",
                message=f"fault {fault.name} must name one {kind} of the emulated facility",
                value=fault.subject,
                allowed=", ".join(sorted(subjects[kind])[:20]) or f"none: it has no {kind}",
            )
        )
    entry = _Entry(fault=fault, kind=kind, subject=found[0])
    if fault.at.after is not None:
        _begin(entry, fault.at.after)
    return entry
