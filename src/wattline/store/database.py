"""How is the database spoken to, so that what was committed survives the machine?

`reading` sees one moment of the database, `writing` is written whole at its end or not at all, and a commit
returns when the disk has it. What differs between SQLite and PostgreSQL is in `sqlite.py` and
`postgresql.py`; everything else of the store speaks to this class alone.

A Database is not carried across fork(): start processes with exec.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Dialect, Engine, Table
from sqlalchemy.exc import DBAPIError, IntegrityError, NoResultFound
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.sql.dml import ReturningInsert

from wattline.errors import UnavailableError
from wattline.store.errors import DatabaseAwayError

# How long anything waits for a lock, a statement or a free connection.
WAIT_SECONDS = 30.0
# How long the writer waits for a database that went away.
AWAY_SECONDS = 60.0

_AGAIN_SECONDS = 0.2

Result = TypeVar("Result")


class Database(abc.ABC):
    """Connections to one database; every failure leaves as an UnavailableError with a hint.

    An IntegrityError passes as it is: a key that exists already is an answer, not a fault.
    """

    is_read_only = False
    row_by_row: Mapping[str, Any] = {}
    """Options under which a large answer is not taken in at once."""

    def __init__(self, name: str, reader: Engine, writer: Engine) -> None:
        self.name = name
        """What people read in messages; never with a password."""
        self._reader = reader
        self._writer = writer

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def owns(self, _file: Path) -> bool:
        """Whether a file is the database's own, and not to be touched by anybody else."""
        return False

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
            raise self.explain(error) from error
        except NoResultFound as error:
            raise UnavailableError(
                f"database {self.name} lacks a row that every store has", hint="restore it from a backup"
            ) from error
        except PoolTimeoutError as error:
            raise UnavailableError(
                f"database {self.name}: no connection became free within {WAIT_SECONDS:g} s",
                hint="ask for less at once",
            ) from error

    def patiently(self, work: Callable[[], Result]) -> Result:
        """Do what may be done twice, and again while the database is away: one that restarts, or is replaced
        by its standby, is not the end of the process that conducts."""
        give_up_at = time.monotonic() + AWAY_SECONDS
        while True:
            try:
                return work()
            except DatabaseAwayError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(_AGAIN_SECONDS)

    @abc.abstractmethod
    def prepare(self) -> None:
        """Check, or see to it, that a commit here will survive; called once when a store is opened."""

    @abc.abstractmethod
    def insert_unless_there(self, table: Table, key: Column[str]) -> ReturningInsert[str]:
        """Add rows whose key is new; gives the keys of those that were added."""

    @abc.abstractmethod
    def lock_for_migration(self, connection: Connection) -> None:
        """Inside `writing`: wait until nobody else migrates."""

    @abc.abstractmethod
    def allow_long(self, connection: Connection) -> None:
        """Inside a transaction: it may take longer than others, such as a backup."""

    @abc.abstractmethod
    def explain(self, error: DBAPIError) -> UnavailableError:
        """What a fault means to the person who must mend it."""

    def read_clock(self, _connection: Connection) -> float:
        """Seconds since 1970 by the clock that all who use this database share."""
        return time.time()

    def close(self) -> None:
        self._reader.dispose()
