"""A journal that outlives its process, and may see it killed around any record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from wattline.control import Documents, StepRecord, refold
from wattline.facility import Facility
from wattline.spec import Policy
from wattline.state import Decision, Event, State


class CrashError(Exception):
    """Killed here."""


class Records:
    """Of a hub or of an agent."""

    def __init__(self, facility: Facility, policy: Policy) -> None:
        self._documents = Documents(facility=lambda _: facility, policy=lambda _: policy)
        self.records: list[StepRecord] = []
        self.crash: str = ""  # before | after: at the next record

    def append(self, events: Sequence[Event], digest: Callable[[], str], decision: Decision) -> None:
        del digest
        if not events and decision.is_idle:
            return
        crash, self.crash = self.crash, ""
        if crash == "before":
            raise CrashError
        self.records.append(StepRecord(events=tuple(events), digest="", decision=decision))
        if crash == "after":
            raise CrashError

    def last_seq(self) -> int:
        return len(self.records)

    def after(self, seq: int) -> Iterable[tuple[int, StepRecord]]:
        return enumerate(self.records[seq:], seq + 1)

    def refold(self) -> State:
        state = refold(None, self.after(0), self._documents)
        assert state is not None
        return state
