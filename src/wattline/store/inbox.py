"""How do other processes hand work to the one writer?

They put messages, each under an id of their own choosing, so that a repeat after a lost answer is the same
message. The writer takes what is pending in order, and settles it in the transaction that journals what it
did about it: a crash in between leaves the message pending and nothing journaled.

On PostgreSQL two that put at once get their positions before they commit, so a message may appear before
one that the writer has taken already. It is not passed over: what counts is not a position up to which all
was read, but that the message itself was not settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from wattline.store.audit import AuditEntry, write_audit
from wattline.store.database import Database
from wattline.store.errors import StoreRefusedError
from wattline.store.records import check_name, check_payload
from wattline.store.schema import inbox

_IDS_PER_STATEMENT = 500  # databases bound the parameters of one statement

_PENDING = (
    select(inbox.c.id, inbox.c.kind, inbox.c.payload)
    .where(inbox.c.settled_seq.is_(None))
    .order_by(inbox.c.position)
)


@dataclass(frozen=True, slots=True)
class Message:
    """Work handed over."""

    id: str
    kind: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a message: pending, or answered by the journal up to `settled_seq`."""

    id: str
    settled_seq: int | None

    @property
    def pending(self) -> bool:
        return self.settled_seq is None


class Inbox:
    """Messages for the writer of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = database.insert_unless_there(inbox, inbox.c.id)

    def put(self, message_id: str, kind: str, payload: bytes) -> bool:
        """Hand over a message; False if this id was there already, whose first content then stands."""
        return self.put_many([Message(message_id, kind, payload)])[0]

    def put_many(self, messages: Sequence[Message], *, audit: Sequence[AuditEntry] = ()) -> list[bool]:
        """Hand over many, and say in the audit who did, in one commit: they share one wait for the disk.

        One answer for each, in order: False if its id was there already. After a fault it is safe to put
        them all again.
        """
        for message in messages:
            _check_message(message)
        if not messages and not audit:
            return []
        with self._database.writing() as connection:
            new_ids = self._insert_new(connection, messages) if messages else set()
            if audit:
                write_audit(connection, audit)
        answers = []
        for message in messages:
            answers.append(message.id in new_ids)
            new_ids.discard(message.id)  # of two with one id in a batch, the first is the new one
        return answers

    def _insert_new(self, connection: Connection, messages: Sequence[Message]) -> set[str]:
        rows = [{"id": message.id, "kind": message.kind, "payload": message.payload} for message in messages]
        return set(connection.execute(self._insert, rows).scalars())

    def take(self, limit: int) -> list[Message]:
        """The oldest pending messages. They stay pending until an append settles them."""

        def take_once() -> list[Message]:
            with self._database.reading() as connection:
                return [Message(*row) for row in connection.execute(_PENDING.limit(limit))]

        return self._database.patiently(take_once)

    def status(self, message_id: str) -> Receipt | None:
        """What became of a message; None if there never was one."""
        query = select(inbox.c.id, inbox.c.settled_seq).where(inbox.c.id == message_id)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return Receipt(*row) if row is not None else None


def _check_message(message: Message) -> None:
    if not message.id:
        raise StoreRefusedError("message id: must not be empty")
    check_name("message id", message.id)
    check_name("kind", message.kind)
    check_payload(f"message {message.id!r}", message.payload)


def settle_messages(connection: Connection, message_ids: Sequence[str], seq: int) -> None:
    """Mark messages as answered by the journal up to `seq`; each must be pending, or none is."""
    settled = 0
    for start in range(0, len(message_ids), _IDS_PER_STATEMENT):
        some_ids = message_ids[start : start + _IDS_PER_STATEMENT]
        statement = (
            update(inbox)
            .where(inbox.c.id.in_(some_ids), inbox.c.settled_seq.is_(None))
            .values(settled_seq=seq)
        )
        settled += connection.execute(statement).rowcount
    if settled != len(message_ids):
        raise StoreRefusedError(
            f"inbox: {len(message_ids)} messages to settle, but only {settled} of them were pending",
            hint="settle each message once, as taken",
        )
