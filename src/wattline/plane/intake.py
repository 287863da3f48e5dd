"""How are submissions and people's words made durable, many at a time?

One thread puts what has come in since its last commit into the inbox, all in one transaction with what the
audit says of it, and only then is anybody told. A disk that syncs two hundred times a second takes thousands
of submissions: the more come, the more share a sync. Whoever conducts takes them from there, in this process
or another: a server that stands by accepts as well.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from wattline.decoding import decode_json
from wattline.errors import UnavailableError, WattlineError
from wattline.plane.session import Message as Event
from wattline.state import RunSubmitted
from wattline.store import Message, Store, open_store
from wattline.store.audit import AuditEntry

_MOST_AT_ONCE = 500
_MOST_WAITING = 10_000
_MOST_LOOKED_AT = 100_000
_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class _Handed:
    events: tuple[tuple[str, Event], ...]  # each under the id of its message
    audit: tuple[AuditEntry, ...]
    done: Future[tuple[bool, ...]] = field(default_factory=Future)


class Intake:
    """The door of one server."""

    def __init__(self, url_or_home: str) -> None:
        self._store: Store = open_store(url_or_home)
        self._waiting: queue.Queue[_Handed | None] = queue.Queue(maxsize=_MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="wattline-intake", daemon=True)
        self._thread.start()

    def put(self, events: Sequence[tuple[str, Event]], *audit: AuditEntry) -> Future[tuple[bool, ...]]:
        """Make events durable under ids of their own; of each, whether it is new. Done once it is synced."""
        handed = _Handed(tuple(events), audit)
        try:
            self._waiting.put_nowait(handed)
        except queue.Full:
            raise UnavailableError(
                f"{_MOST_WAITING} calls wait to be written down already", hint="try again in a few seconds"
            ) from None
        return handed.done

    def find_submitted(self, message_id: str) -> RunSubmitted | None:
        """The submission of a message that nobody has taken in yet."""
        for message in self._store.inbox.take(_MOST_LOOKED_AT):
            if message.id == message_id:
                return decode_json(message.payload, RunSubmitted)
        return None

    def close(self) -> None:
        """Write down what was handed over, then leave."""
        self._waiting.put(None)
        self._thread.join()
        self._store.close()

    def _run(self) -> None:
        while True:
            together, is_last = self._gather()
            if together:
                self._write(together)
            if is_last:
                return

    def _gather(self) -> tuple[list[_Handed], bool]:
        """What waits by now, one at least."""
        found: list[_Handed] = []
        handed = self._waiting.get()
        while handed is not None:
            found.append(handed)
            if len(found) >= _MOST_AT_ONCE:
                return found, False
            try:
                handed = self._waiting.get_nowait()
            except queue.Empty:
                return found, False
        return found, True

    def _write(self, together: list[_Handed]) -> None:
        messages = [
            Message(name, "event", _encode(event)) for each in together for name, event in each.events
        ]
        audit = [entry for each in together for entry in each.audit]
        try:
            is_new = iter(self._store.inbox.put_many(messages, audit=audit))
        except WattlineError as error:
            for each in together:
                each.done.set_exception(error)
            return
        for each in together:
            each.done.set_result(tuple(islice(is_new, len(each.events))))
