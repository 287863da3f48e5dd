"""What happened, in order, and was any of it changed since?

One append is one transaction: it checks the writer lease, chains the entries to the head, and settles the
messages they answer. The head is kept apart from the records so that a cut tail is noticed too. Reading goes
in batches with nothing open between them, so a slow reader never keeps SQLite from trimming its log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select, type_coerce, update
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.types import NullType

from wattline.store.chain import chain, verify_chain
from wattline.store.database import Database
from wattline.store.errors import JournalAlteredError
from wattline.store.inbox import settle_messages
from wattline.store.lease import WriterLease
from wattline.store.records import Entry, Record, Snapshot, check_settle, check_snapshot
from wattline.store.schema import journal, journal_head
from wattline.store.snapshots import read_latest_snapshot, write_snapshot

_BATCH_RECORDS = 1000
_BATCH_BYTES = 8 * 1024 * 1024

_HEAD = select(journal_head.c.seq, journal_head.c.hash).where(journal_head.c.id == 1)
_HEAD_LOCKED = _HEAD.with_for_update()
# One statement sees one moment, so a record after the head is an intruder and not a late append.
_HEAD_AND_END = _HEAD.add_columns(select(func.coalesce(func.max(journal.c.seq), 0)).scalar_subquery())
_FIELDS = ("seq", "at", "kind", "project", "actor", "schema", "previous_hash", "hash", "payload")
_values_of = attrgetter(*_FIELDS)
# Values as the driver gives them: a column of the wrong type must reach verify(), not fail in conversion.
_RECORDS = select(*(type_coerce(journal.c[name], NullType()) for name in _FIELDS)).order_by(journal.c.seq)


class SqlJournal:
    """The journal of one database; see `Journal` for what each call promises."""

    def __init__(self, database: Database, lease: WriterLease) -> None:
        self._database = database
        self._lease = lease
        self._insert = str(insert(journal).compile(dialect=database.dialect))
        self._by_name = not database.dialect.positional

    def append(self, entries: Sequence[Entry], *, settle: Sequence[str] = ()) -> int:
        """Needs the writer lease; a writer that lost it gets LeaseLostError and writes nothing.

        When the database is lost before it has answered, the append is looked for by its hash once the
        database is back, and done again only if it is not there.
        """
        check_settle(entries, settle)
        tried: set[bytes] = set()

        def append_once() -> int:
            with self._database.writing() as connection:
                self._lease.require(connection)
                head = connection.execute(_HEAD_LOCKED).one()
                if not entries or head.hash in tried:
                    return int(head.seq)
                records = chain(entries, head.seq, head.hash)
                tried.add(records[-1].hash)
                self._write(connection, records)
                if settle:
                    settle_messages(connection, settle, records[-1].seq)
            return records[-1].seq

        return self._database.patiently(append_once)

    def _write(self, connection: Connection, records: Sequence[Record]) -> None:
        last = records[-1]
        try:
            # Straight to the driver: SQLAlchemy's handling of parameters costs more than SQLite itself.
            connection.exec_driver_sql(self._insert, self._parameters(records))
        except IntegrityError as error:
            raise JournalAlteredError(records[0].seq, "was there before it was appended") from error
        connection.execute(update(journal_head).values(seq=last.seq, hash=last.hash))

    def _parameters(self, records: Sequence[Record]) -> list[Any]:
        values = map(_values_of, records)
        return [dict(zip(_FIELDS, row, strict=True)) for row in values] if self._by_name else list(values)

    def read(
        self, after_seq: int = 0, kinds: Iterable[str] | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        query = _RECORDS if kinds is None else _RECORDS.where(journal.c.kind.in_(sorted(set(kinds))))
        left = limit
        while left is None or left > 0:
            batch = self._read_batch(query, after_seq, _BATCH_RECORDS if left is None else left)
            if not batch:
                return
            yield from batch
            after_seq = batch[-1].seq
            left = None if left is None else left - len(batch)

    def _read_batch(self, query: Select[*tuple[Any, ...]], after_seq: int, limit: int) -> list[Record]:
        """Some of the next records: as many as a batch may have in number and in bytes, one at least."""
        return self._database.patiently(lambda: self._read_batch_once(query, after_seq, limit))

    def _read_batch_once(self, query: Select[*tuple[Any, ...]], after_seq: int, limit: int) -> list[Record]:
        query = query.where(journal.c.seq > after_seq).limit(min(limit, _BATCH_RECORDS))
        batch: list[Record] = []
        payload_bytes = 0
        with self._database.reading() as connection:
            rows = connection.execute(query, execution_options=self._database.row_by_row)
            try:
                while payload_bytes < _BATCH_BYTES and (row := rows.fetchone()) is not None:
                    payload_bytes += len(row[-1])
                    batch.append(Record(*row))
            except (OperationalError, TypeError) as error:
                _raise_if_undecodable(error, after_seq=batch[-1].seq if batch else after_seq)
                raise
            rows.close()
        return batch

    def last_seq(self) -> int:
        with self._database.reading() as connection:
            return int(connection.execute(_HEAD).one().seq)

    def verify(self) -> int:
        with self._database.reading() as connection:
            head = connection.execute(_HEAD_AND_END).one_or_none()
        if head is None:
            raise JournalAlteredError(1, "cannot be checked: the journal's head is missing")
        head_seq, head_hash, end_seq = head
        last_seq = verify_chain(self.read(), head_seq, head_hash)
        if end_seq > head_seq:
            raise JournalAlteredError(head_seq + 1, "was not appended by a writer")
        return last_seq

    def save_snapshot(self, seq: int, digest: str, payload: bytes) -> None:
        """Needs the writer lease, as append does."""

        def save_once() -> None:
            with self._database.writing() as connection:
                self._lease.require(connection)
                check_snapshot(seq, digest, payload, connection.execute(_HEAD).one().seq)
                write_snapshot(connection, Snapshot(seq, digest, payload))

        self._database.patiently(save_once)

    def latest_snapshot(self, before_seq: int | None = None) -> Snapshot | None:
        with self._database.reading() as connection:
            return read_latest_snapshot(connection, before_seq)


def _raise_if_undecodable(error: OperationalError | TypeError, *, after_seq: int) -> None:
    """SQLite keeps text that is not UTF-8, and payloads that are no bytes; only an intruder wrote them."""
    orig = error.orig if isinstance(error, OperationalError) else error
    if isinstance(orig, TypeError) or (
        isinstance(orig, sqlite3.Error) and not hasattr(orig, "sqlite_errorcode")
    ):
        raise JournalAlteredError(after_seq + 1, "was altered: it cannot be decoded") from error
