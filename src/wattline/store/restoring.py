"""How does a store come back from a file, whole or not at all, in whichever database is wanted?

One transaction makes the tables as the backup's version had them, fills them, walks the journal's chain,
and migrates them to the version of today: a restore that is cut off leaves the target as it was. A target
that has something in it is left alone unless it is to be replaced, and one that somebody writes to always is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import Connection, column, delete, func, insert, inspect, select, table
from sqlalchemy.exc import DataError, IntegrityError, InterfaceError, ProgrammingError

from wattline.errors import UnavailableError
from wattline.store.archive import End, Frame, Header, Piece, Rows, Tell, read_archive
from wattline.store.backup import BackupInfo, info_of, record_of
from wattline.store.chain import ChainWalk
from wattline.store.database import Database
from wattline.store.errors import JournalAlteredError, StoreRefusedError
from wattline.store.lease import WriterLease
from wattline.store.migrating import migrate, read_version
from wattline.store.objects import ObjectStore
from wattline.store.opening import connect, open_store
from wattline.store.schema import (
    SCHEMA_VERSION,
    audit,
    inbox,
    journal,
    journal_head,
    metadata,
    schema_version,
    tokens,
    writer_lease,
)

_PEOPLES = (journal, inbox, tokens, audit)  # a store is empty when these are


def restore(file: Path, where: str, *, objects: ObjectStore, replace: bool, tell: Tell) -> BackupInfo:
    """Make a store of a backup, and read its journal back from the database."""
    database = connect(where)
    try:
        size_bytes = file.stat().st_size
        with file.open("rb") as source:
            frames = _following(read_archive(source, str(file)), lambda: tell(source.tell(), size_bytes))
            info = _Restoring(database, objects, frames, str(file)).restore(size_bytes, replace=replace)
    except OSError as error:
        raise UnavailableError(
            f"file {file}: cannot be read: {error.strerror or error}", hint="name a file that is there"
        ) from error
    finally:
        database.close()
    with open_store(where) as store:
        store.journal.verify()
    return info


class _Restoring:
    """One restore on its way."""

    def __init__(self, database: Database, objects: ObjectStore, frames: Iterator[Frame], name: str) -> None:
        self._database = database
        self._objects = objects
        self._frames = frames
        self._name = name
        self._walk = ChainWalk()

    def restore(self, size_bytes: int, *, replace: bool) -> BackupInfo:
        header = next(self._frames)
        assert isinstance(header, Header), "read_archive sees to it"
        if header.schema_version > SCHEMA_VERSION:
            raise UnavailableError(
                f"{self._name}: has schema version {header.schema_version};"
                f" this wattline knows versions up to {SCHEMA_VERSION}",
                hint="upgrade wattline to what wrote it",
            )
        self._database.prepare()
        with self._database.writing() as connection:
            self._database.lock_for_migration(connection)
            self._make_room(connection, replace=replace)
            migrate(connection, header.schema_version)
            self._check_columns(connection, header)
            for made_by_migration in (journal_head, writer_lease):
                connection.execute(delete(made_by_migration))
            end = self._take_in(connection, header)
            connection.execute(writer_lease.update().values(held=False))
            _restart_sequences(connection)
            migrate(connection, SCHEMA_VERSION)
        return info_of(header, end, size_bytes)

    def _make_room(self, connection: Connection, *, replace: bool) -> None:
        name = self._database.name
        if read_version(connection, name) == 0:
            return
        writer = WriterLease(self._database).current_in(connection)
        if writer is not None:
            raise StoreRefusedError(
                f"database {name}: {writer.holder} on {writer.process.hostname} writes to it",
                hint="stop that process first",
            )
        there = set(inspect(connection).get_table_names())
        full = [one.name for one in _PEOPLES if one.name in there and _has_rows(connection, one.name)]
        if full and not replace:
            raise StoreRefusedError(
                f"database {name} is not empty: it has rows in {', '.join(full)}",
                hint="name another with --into, or give --force to lose what it has",
            )
        for one in reversed(metadata.sorted_tables):
            one.drop(connection, checkfirst=True)
        connection.exec_driver_sql(f"DROP TABLE {schema_version.name}")
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("DROP FUNCTION IF EXISTS audit_is_append_only")

    def _check_columns(self, connection: Connection, header: Header) -> None:
        """Names in a file are not to be believed: they must be those of the tables that were just made."""
        seen = inspect(connection)
        tables = set(seen.get_table_names()) - {schema_version.name}
        there = {name: sorted(one["name"] for one in seen.get_columns(name)) for name in tables}
        if there != {name: sorted(columns) for name, columns in header.tables.items()}:
            raise self._strange("its tables are not those of its version")

    def _take_in(self, connection: Connection, header: Header) -> End:
        for frame in self._frames:
            if isinstance(frame, End):
                self._walk.end(header.journal_seq, header.journal_hash)
                return frame
            if isinstance(frame, Rows):
                self._take_rows(connection, header, frame)
            elif isinstance(frame, Piece):
                self._take_object(frame)
        raise AssertionError("an archive ends with End")

    def _take_rows(self, connection: Connection, header: Header, frame: Rows) -> None:
        names = header.tables.get(frame.table)
        if names is None or any(len(row) != len(names) for row in frame.rows):
            raise self._strange(f"it has rows of {frame.table[:40]!r} that fit no table")
        if frame.table == journal.name:
            self._walk_through(frame)
        target = table(frame.table, *(column(name) for name in names))
        try:
            connection.execute(insert(target), [dict(zip(names, row, strict=True)) for row in frame.rows])
        except (DataError, IntegrityError, InterfaceError, ProgrammingError) as error:
            raise self._strange(f"rows of {frame.table!r} are refused by the database") from error

    def _walk_through(self, frame: Rows) -> None:
        try:
            for row in frame.rows:
                self._walk.take(record_of(row))
        except JournalAlteredError as error:
            raise self._strange(error.message) from error

    def _take_object(self, first: Piece) -> None:
        digest = self._objects.put_chunks(self._contents(first))
        if digest != first.digest:
            raise self._strange(f"an object is {digest}, and should be {first.digest[:80]!r}")

    def _contents(self, piece: Frame) -> Iterator[bytes]:
        digest = piece.digest if isinstance(piece, Piece) else ""
        while isinstance(piece, Piece) and piece.digest == digest:
            yield piece.content
            if piece.is_last:
                return
            piece = next(self._frames)
        raise self._strange("an object ends too early")

    def _strange(self, why: str) -> UnavailableError:
        return UnavailableError(f"{self._name}: this backup is damaged: {why}", hint="use another backup")


def _has_rows(connection: Connection, name: str) -> bool:
    return connection.execute(select(1).select_from(table(name)).limit(1)).scalar() is not None


def _restart_sequences(connection: Connection) -> None:
    """PostgreSQL counts positions apart from the rows; SQLite goes on after the last row."""
    if connection.dialect.name != "postgresql":
        return
    there = set(inspect(connection).get_table_names())
    for one in (inbox, audit):
        if one.name in there:
            last = connection.execute(select(func.max(one.c.position))).scalar()
            sequence = func.pg_get_serial_sequence(one.name, "position")
            connection.execute(select(func.setval(sequence, last or 1, last is not None)))


def _following(frames: Iterator[Frame], tell: Callable[[], None]) -> Iterator[Frame]:
    for frame in frames:
        tell()
        yield frame
