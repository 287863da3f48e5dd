"""Where is the store, and what does opening it give?"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from wattline.errors import UsageError
from wattline.store.database import Database
from wattline.store.inbox import Inbox
from wattline.store.journal import SqlJournal
from wattline.store.lease import WriterLease
from wattline.store.migrating import bring_up_to_date
from wattline.store.records import Journal

DATABASE_NAME = "wattline.db"


class Store:
    """Journal, lease and inbox of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.lease = WriterLease(database)
        self.journal: Journal = SqlJournal(database, self.lease)
        self.inbox = Inbox(database)

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
    database = Database(_database_url(os.fspath(url_or_home)))
    try:
        bring_up_to_date(database)
        return Store(database)
    except BaseException:
        database.close()
        raise


def _database_url(url_or_home: str) -> URL:
    if "://" not in url_or_home:
        return URL.create("sqlite", database=str(Path(url_or_home) / DATABASE_NAME))
    try:
        url = make_url(url_or_home)
    except ArgumentError as error:
        raise UsageError(
            "database: not a SQLAlchemy URL", hint="write it as sqlite:////var/lib/wattline/wattline.db"
        ) from error
    if url.get_backend_name() != "sqlite":
        raise UsageError(
            f"database: only sqlite is supported, got {url.get_backend_name()!r}",
            hint="write it as sqlite:////var/lib/wattline/wattline.db",
        )
    if url.database in (None, "", ":memory:"):
        raise UsageError(
            "database: a store lives in a file, got an in-memory database",
            hint="write it as sqlite:////var/lib/wattline/wattline.db",
        )
    return url
