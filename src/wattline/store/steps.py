"""How are the loop's steps kept, and read back?

Implements the Journal that `control` asks for: one step is one record, and one transaction with the inbox
messages that the step answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from wattline.control import StepRecord, decode_step, encode_step
from wattline.errors import UnavailableError
from wattline.state import SCHEMA_VERSION, Decision, Event
from wattline.store.records import Entry, Journal

STEP = "step"


class StepJournal:
    """Steps on a journal. `answered` names the messages whose events the step took in."""

    def __init__(self, journal: Journal, answered: Callable[[], Sequence[str]] = tuple) -> None:
        self._journal = journal
        self._answered = answered

    def append(
        self, events: Sequence[Event], digest: Callable[[], str], decision: Decision, *, decided: bool = True
    ) -> None:
        """A turn in which nothing came in and nothing was decided leaves no record."""
        answered = self._answered()
        if not (events or answered) and decision.is_idle:
            return
        record = StepRecord(events=tuple(events), digest=digest(), decision=decision, decided=decided)
        projects = {event.project for event in events if event.project}
        actors = {event.actor for event in events}
        entry = Entry(
            at=decision.at,
            kind=STEP,
            project=projects.pop() if len(projects) == 1 else "",
            actor=actors.pop() if len(actors) == 1 else "wattline",
            schema=SCHEMA_VERSION,
            payload=encode_step(record),
        )
        self._journal.append([entry], settle=answered)


def read_steps(journal: Journal, after_seq: int = 0) -> Iterator[tuple[int, StepRecord]]:
    """Every step after a record, with its number."""
    for record in journal.read(after_seq, kinds=[STEP]):
        if record.schema > SCHEMA_VERSION:
            raise UnavailableError(
                f"journal record {record.seq} has schema {record.schema}, this version reads up to "
                f"{SCHEMA_VERSION}",
                hint="upgrade Wattline to the version that wrote it",
            )
        try:
            yield record.seq, decode_step(record.payload)
        except msgspec.MsgspecError as error:
            raise UnavailableError(f"journal record {record.seq} cannot be read: {error}") from error
