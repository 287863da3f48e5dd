"""How is all of a store put into one file, while somebody writes to it?

Everything is read in one transaction, so the file has one moment of the database; objects come after, and
those that the journal names were there before it named them. The journal's chain is walked on the way in.
The file is read back and checked whole before it gets its name.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import Boolean, Connection, Table, func, select, type_coerce
from sqlalchemy.types import NullType

from wattline import __version__
from wattline.errors import UnavailableError
from wattline.store.archive import ArchiveWriter, End, Header, Piece, Rows, Tell, read_archive
from wattline.store.chain import ChainWalk
from wattline.store.database import Database
from wattline.store.errors import StoreRefusedError
from wattline.store.migrating import bring_up_to_date
from wattline.store.objects import ObjectStore
from wattline.store.opening import connect
from wattline.store.records import Record
from wattline.store.schema import SCHEMA_VERSION, inbox, journal, journal_head, metadata, snapshots

_FRAME_ROWS = 1000
_FRAME_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupInfo:
    """What a backup holds, after all of it was read and checked."""

    size_bytes: int
    taken_at: float
    schema_version: int
    journal_seq: int
    journal_hash: str
    counts: dict[str, int]
    """Rows by table; `objects` where it has any."""
    has_objects: bool
    sha256: str


def back_up(where: str, file: Path, *, objects: ObjectStore | None, replace: bool, tell: Tell) -> BackupInfo:
    """Write a backup and check it; a file of this name is replaced only if that was asked for."""
    if file.exists() and not replace:
        raise StoreRefusedError(f"file {file}: there is one already", hint="name another, or give --force")
    database = connect(where)
    if database.owns(file):
        raise StoreRefusedError(f"file {file}: is the database itself", hint="name another file")
    try:
        bring_up_to_date(database)
        handle, name = tempfile.mkstemp(dir=file.absolute().parent, prefix=f".{file.name}-")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as target:
                _Backup(database, objects, ArchiveWriter(target), tell).write()
                target.flush()
                os.fsync(target.fileno())
            with temporary.open("rb") as written:
                info = check_backup(written, str(file))
            temporary.replace(file)
            _sync(file.absolute().parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UnavailableError(
            f"file {file}: cannot be written: {error.strerror or error}",
            hint="name a file in a folder that exists, may be written, and has room",
        ) from error
    finally:
        database.close()
    return info


def check_backup(file: BinaryIO, name: str) -> BackupInfo:
    """Read a backup whole: every hash of it, and the chain of its journal."""
    walk = ChainWalk()
    header: Header | None = None
    for frame in read_archive(file, name):
        if isinstance(frame, Header):
            header = frame
        elif isinstance(frame, Rows) and frame.table == journal.name:
            for row in frame.rows:
                walk.take(record_of(row))
        elif isinstance(frame, End):
            assert header is not None
            walk.end(header.journal_seq, header.journal_hash)
            return info_of(header, frame, file.tell())
    raise AssertionError("an archive ends with End")


def info_of(header: Header, end: End, size_bytes: int) -> BackupInfo:
    return BackupInfo(
        size_bytes=size_bytes,
        taken_at=header.taken_at,
        schema_version=header.schema_version,
        journal_seq=header.journal_seq,
        journal_hash=header.journal_hash.hex(),
        counts=dict.fromkeys(header.tables, 0) | end.counts,
        has_objects=header.has_objects,
        sha256=end.sha256.hex(),
    )


def record_of(row: list[Any]) -> Record:
    """A row of the journal; what is no record fails the walk of the chain, whatever it is made of."""
    return Record(*row)


class _Backup:
    """One backup on its way."""

    def __init__(
        self, database: Database, objects: ObjectStore | None, writer: ArchiveWriter, tell: Tell
    ) -> None:
        self._database = database
        self._objects = objects
        self._writer = writer
        self._tell = tell
        self._whole_bytes = 0

    def write(self) -> None:
        with self._database.reading() as connection:
            self._database.allow_long(connection)
            self._whole_bytes = self._expected_bytes(connection)
            head = connection.execute(select(journal_head.c.seq, journal_head.c.hash)).one()
            self._writer.write(
                Header(
                    schema_version=SCHEMA_VERSION,
                    taken_at=time.time(),
                    software=__version__,
                    tables={
                        str(table.name): list(map(str, table.columns.keys()))
                        for table in metadata.sorted_tables
                    },
                    journal_seq=head.seq,
                    journal_hash=head.hash,
                    has_objects=self._objects is not None,
                )
            )
            walk = ChainWalk()
            for table in metadata.sorted_tables:
                for rows in self._rows_of(connection, table):
                    for row in rows if table is journal else ():
                        walk.take(record_of(row))
                    self._write(Rows(str(table.name), rows))
            walk.end(head.seq, head.hash)
        for digest, _ in self._objects.list() if self._objects is not None else ():
            self._write_object(str(digest))
        self._writer.finish()

    def _rows_of(self, connection: Connection, table: Table) -> Iterator[list[list[Any]]]:
        """Rows as the driver gives them, so that what an intruder wrote reaches the walk of the chain."""
        columns = [
            column if isinstance(column.type, Boolean) else type_coerce(column, NullType())
            for column in table.columns
        ]
        query = select(*columns).order_by(*table.primary_key.columns)
        rows: list[list[Any]] = []
        gathered_bytes = 0
        for row in connection.execute(query, execution_options=self._database.row_by_row):
            rows.append(list(row))
            gathered_bytes += sum(len(value) for value in row if isinstance(value, bytes | str))
            if len(rows) == _FRAME_ROWS or gathered_bytes > _FRAME_BYTES:
                yield rows
                rows, gathered_bytes = [], 0
        if rows:
            yield rows

    def _write_object(self, digest: str) -> None:
        assert self._objects is not None
        held: bytes = b""
        for chunk in self._objects.read(digest):
            if held:
                self._write(Piece(digest, held, is_last=False))
            held = chunk
        self._write(Piece(digest, held, is_last=True))

    def _write(self, frame: Rows | Piece) -> None:
        self._writer.write(frame)
        self._tell(self._writer.written_bytes, max(self._whole_bytes, self._writer.written_bytes))

    def _expected_bytes(self, connection: Connection) -> int:
        """About how much there is to write: payloads are nearly all of it."""
        tables = [
            connection.execute(select(func.coalesce(func.sum(func.length(table.c.payload)), 0))).scalar_one()
            for table in (journal, snapshots, inbox)
        ]
        sizes = [size for _, size in self._objects.list()] if self._objects is not None else []
        return sum(map(int, tables)) + sum(sizes)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
