"""Where is the store, and what does opening it give?"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from wattline.errors import UnavailableError, UsageError
from wattline.store.audit import Audit
from wattline.store.database import Database
from wattline.store.inbox import Inbox
from wattline.store.journal import SqlJournal
from wattline.store.lease import WriterLease
from wattline.store.migrating import bring_up_to_date
from wattline.store.records import Journal
from wattline.store.sqlite import SqliteDatabase
from wattline.store.tokens import Tokens

DATABASE_NAME = "wattline.db"

_SPELLINGS = (
    "write it as sqlite:////var/lib/wattline/wattline.db or postgresql+psycopg://USER:PASSWORD@HOST/NAME"
)


class Store:
    """Journal, lease, inbox, tokens and audit of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.lease = WriterLease(database)
        self.journal: Journal = SqlJournal(database, self.lease)
        self.inbox = Inbox(database)
        self.tokens = Tokens(database)
        self.audit = Audit(database)

    def close(self) -> None:
        """Release the lease, if it is held here, and let go of the database."""
        try:
            if self.lease.held is not None:
                self.lease.release(self.lease.held)
        finally:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_store(url_or_home: str | os.PathLike[str]) -> Store:
    """Open the store at a SQLAlchemy URL, or in the directory `home`; make or migrate it when needed.

    The directory must exist. Raises UnavailableError when the database cannot be used, and then leaves it
    as it was.
    """
    database = connect(os.fspath(url_or_home))
    try:
        bring_up_to_date(database)
        return Store(database)
    except BaseException:
        database.close()
        raise


def connect(url_or_home: str) -> Database:
    """The database that is meant; nothing is opened yet."""
    if "://" not in url_or_home:
        return SqliteDatabase(URL.create("sqlite", database=str(Path(url_or_home) / DATABASE_NAME)))
    try:
        url = make_url(url_or_home)
    except (ArgumentError, ValueError):
        # Neither said nor chained: what cannot be read as a URL may have a password anywhere in it.
        raise UsageError("database: not a SQLAlchemy URL", hint=_SPELLINGS) from None
    if url.get_backend_name() == "postgresql":
        return _connect_postgresql(url)
    if url.get_backend_name() != "sqlite":
        raise UsageError(
            f"database: sqlite and postgresql are supported, got {url.get_backend_name()!r}", hint=_SPELLINGS
        )
    if url.database in (None, "", ":memory:"):
        raise UsageError("database: a store lives in a file, got an in-memory database", hint=_SPELLINGS)
    return SqliteDatabase(url)


def _connect_postgresql(url: URL) -> Database:
    secret = sorted(url.query.keys() & {"password", "sslpassword"})
    if secret:
        raise UsageError(
            f"database: {secret[0]} stands among the options of the URL, where it would be printed",
            hint="write it as postgresql+psycopg://USER:PASSWORD@HOST/NAME, or keep it in ~/.pgpass",
        )
    try:
        from wattline.store.postgresql import PostgresDatabase

        return PostgresDatabase(url.set(drivername="postgresql+psycopg"))
    except ModuleNotFoundError as error:
        raise UnavailableError(
            f"database: PostgreSQL needs a client library that is not installed ({error.name})",
            hint="install it: pip install 'wattline[control,postgres]'",
        ) from error
