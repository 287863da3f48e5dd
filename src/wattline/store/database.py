"""How is the database spoken to, so that what was committed survives the machine?

SQLite runs in WAL mode with synchronous=FULL: each commit waits until the disk has it, and readers never
wait for the writer. A transaction that will write says so when it begins (BEGIN IMMEDIATE): one that starts
as a reader and then writes can fail at once with "locked", whatever the timeout.

Nothing here, and nothing in a process that has a store open, may open the database file by other means than
SQLite, not even to read it: closing any descriptor of a file drops all locks the process has on it, another
process then takes itself for the last one and deletes the log, and what is committed after that is lost.
For the same kind of reason a Database is not carried across fork(): start processes with exec.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Dialect, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, NoResultFound

from wattline.errors import UnavailableError
from wattline.store.faults import explain_fault

BUSY_SECONDS = 30.0


class Database:
    """Connections to one SQLite file; every failure leaves as an UnavailableError with a hint.

    An IntegrityError passes as it is: a key that exists already is an answer, not a fault.
    """

    def __init__(self, url: URL) -> None:
        assert url.database is not None
        self.file = Path(url.database)
        self._reader = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, hide_parameters=True)
        self._writer = self._reader.execution_options(writes=True)
        event.listen(self._reader, "connect", _prepare_connection)
        event.listen(self._reader, "begin", _begin)

    @property
    def dialect(self) -> Dialect:
        return self._reader.dialect

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One transaction that sees one moment of the database."""
        with self._transaction(self._reader) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction that is written whole at its end, or not at all."""
        with self._transaction(self._writer) as connection:
            yield connection

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise explain_fault(error, str(self.file)) from error
        except NoResultFound as error:
            raise UnavailableError(
                f"database {self.file} lacks a row that every store has", hint="restore it from a backup"
            ) from error

    def journal_mode(self) -> str:
        """How SQLite keeps a commit safe at present: `wal` once the file was prepared."""
        with self.reading() as connection:
            return str(connection.exec_driver_sql("PRAGMA journal_mode").scalar_one())

    def use_wal(self) -> None:
        """Switch the file to WAL. Persistent; SQLite does not wait for readers here, so this does."""
        give_up_at = time.monotonic() + BUSY_SECONDS
        while (answer := self._try_wal()) != "wal":
            if answer is not None:
                raise UnavailableError(
                    f"database {self.file} cannot use a write-ahead log (its disk allows only {answer!r})",
                    hint="keep it on a local disk; network file systems cannot share it safely",
                )
            if time.monotonic() > give_up_at:
                raise UnavailableError(
                    f"database {self.file} stayed in use for {BUSY_SECONDS:g} s while being prepared",
                    hint="find the process that holds the file (fuser, lsof) and let it finish",
                )
            time.sleep(0.01)

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
            raise explain_fault(DBAPIError(None, None, error), str(self.file)) from error
        finally:
            connection.close()

    def close(self) -> None:
        self._reader.dispose()


def _prepare_connection(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own: _begin does
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
