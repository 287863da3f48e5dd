"""How is a SQLite file used, so that a commit survives and nobody waits for a reader?

It runs in WAL mode with synchronous=FULL: each commit waits until the disk has it, and readers never wait
for the writer. A transaction that will write says so when it begins (BEGIN IMMEDIATE): one that starts as a
reader and then writes can fail at once with "locked", whatever the timeout.

Nothing here, and nothing in a process that has a store open, may open the database file by other means than
SQLite, not even to read it: closing any descriptor of a file drops all locks the process has on it, another
process then takes itself for the last one and deletes the log, and what is committed after that is lost.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Column, Connection, Table, create_engine, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import ReturningInsert

from wattline.errors import UnavailableError
from wattline.store.database import WAIT_SECONDS, Database

_MEANINGS = {
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        "its directory must exist, and this user must be able to write in it",
    ),
    sqlite3.SQLITE_PERM: ("may not be used by this user", "give this user write access to the file"),
    sqlite3.SQLITE_READONLY: (
        "is read-only",
        "give this user write access to the file and to its directory",
    ),
    sqlite3.SQLITE_FULL: (
        "has no room left on its disk; this change was not written",
        "free space on the disk and try again",
    ),
    sqlite3.SQLITE_IOERR: (
        "cannot be read or written by the disk; this change was not written",
        "check the disk and the system log, then try again",
    ),
    sqlite3.SQLITE_NOTADB: ("is not a SQLite database", "name another file, or move this one away"),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "restore it from a backup"),
    sqlite3.SQLITE_BUSY: (
        "stayed locked by another process",
        "find the process that holds the file (fuser, lsof) and let it finish",
    ),
}


class SqliteDatabase(Database):
    """One file, shared by the processes of one machine."""

    def __init__(self, url: URL) -> None:
        assert url.database is not None
        self.file = Path(url.database)
        self._turn = threading.Lock()
        self.is_read_only = url.query.get("mode") == "ro"
        reader = create_engine(
            url, connect_args={"timeout": WAIT_SECONDS}, pool_timeout=WAIT_SECONDS, hide_parameters=True
        )
        event.listen(reader, "connect", _prepare_connection)
        event.listen(reader, "begin", _begin)
        super().__init__(str(self.file), reader, reader.execution_options(writes=True))

    def owns(self, file: Path) -> bool:
        there = self.file.resolve()
        return file.resolve() in (there, Path(f"{there}-wal"), Path(f"{there}-shm"))

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Threads of one process take turns: SQLite only looks again now and then, and some would starve."""
        if not self._turn.acquire(timeout=WAIT_SECONDS):
            raise UnavailableError(
                f"database {self.name} stayed locked by this process itself for {WAIT_SECONDS:g} s",
                hint="write less at once",
            )
        try:
            with super().writing() as connection:
                yield connection
        finally:
            self._turn.release()

    def prepare(self) -> None:
        """Switch the file to WAL, which stays. SQLite does not wait for readers here, so this does."""
        if self.is_read_only or self.journal_mode() == "wal":
            return
        give_up_at = time.monotonic() + WAIT_SECONDS
        while (answer := self._try_wal()) != "wal":
            if answer is not None:
                raise UnavailableError(
                    f"database {self.file} cannot use a write-ahead log (its disk allows only {answer!r})",
                    hint="keep it on a local disk; network file systems cannot share it safely",
                )
            if time.monotonic() > give_up_at:
                raise UnavailableError(
                    f"database {self.file} stayed in use for {WAIT_SECONDS:g} s while being prepared",
                    hint="find the process that holds the file (fuser, lsof) and let it finish",
                )
            time.sleep(0.01)

    def journal_mode(self) -> str:
        """How SQLite keeps a commit safe at present: `wal` once the file was prepared."""
        with self.reading() as connection:
            return str(connection.exec_driver_sql("PRAGMA journal_mode").scalar_one())

    def _try_wal(self) -> str | None:
        """The mode that holds now, or None while somebody reads. Not possible inside a transaction."""
        connection = self._reader.raw_connection()
        try:
            cursor = connection.cursor()
            cursor.execute("PRAGMA journal_mode=WAL")
            return str(cursor.fetchall()[0][0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return None
            raise self.explain(DBAPIError(None, None, error)) from error
        finally:
            connection.close()

    def insert_unless_there(self, table: Table, key: Column[str]) -> ReturningInsert[str]:
        return insert(table).on_conflict_do_nothing(index_elements=[key]).returning(key)

    def lock_for_migration(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE has taken the only write lock there is."""

    def allow_long(self, connection: Connection) -> None:
        """Nothing here is ended for taking long."""

    def explain(self, error: DBAPIError) -> UnavailableError:
        """The low byte of SQLite's code is the primary one."""
        code = getattr(error.orig, "sqlite_errorcode", None)
        if isinstance(code, int) and (meaning := _MEANINGS.get(code & 0xFF)):
            what, hint = meaning
            return UnavailableError(f"database {self.name} {what} ({error.orig})", hint=hint)
        return UnavailableError(
            f"database {self.name} failed: {error.orig}", hint="check the database, then try again"
        )


def _prepare_connection(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own: _begin does
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
