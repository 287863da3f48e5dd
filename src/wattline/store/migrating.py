"""Is this database ours, and of the version this program knows?

A current database costs three small queries: alembic, which takes longer to import than most commands run,
is loaded only when there is something to migrate. Migrating is one transaction that takes the database's
write lock first and then looks at the version again: a crash in the middle leaves the old version, and of
processes that open a fresh home at once one migrates while the others wait. A database that is newer, or of
something else, is only read. So is an older one that was opened for reading alone: the journal is in it.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, select

from wattline.errors import UnavailableError
from wattline.store.database import Database
from wattline.store.schema import SCHEMA_VERSION, schema_version

_MIGRATIONS = Path(__file__).parent / "migrations"


def bring_up_to_date(database: Database) -> None:
    """Leave the database at SCHEMA_VERSION and durable, or raise and leave it as it was."""
    with database.reading() as connection:
        version = read_version(connection, database.name)
    database.prepare()
    if version < SCHEMA_VERSION and not (version and database.is_read_only):
        with database.writing() as connection:
            database.lock_for_migration(connection)
            if read_version(connection, database.name) < SCHEMA_VERSION:
                migrate(connection, SCHEMA_VERSION)


def read_version(connection: Connection, name: str) -> int:
    """The version the database is at, 0 for an empty one; raise if it cannot be ours to use."""
    tables = inspect(connection).get_table_names()
    if not tables:
        return 0
    if schema_version.name not in tables:
        raise UnavailableError(
            f"database {name} belongs to something else: it has the table {tables[0]!r}"
            f" and no {schema_version.name!r}",
            hint="name another database for the store",
        )
    text = connection.execute(select(schema_version.c.version_num)).scalar()
    if not isinstance(text, str) or not text.isdecimal():
        raise UnavailableError(
            f"database {name} has the schema version {text!r}, which is not a number",
            hint="restore it from a backup",
        )
    if int(text) > SCHEMA_VERSION:
        raise UnavailableError(
            f"database {name} has schema version {int(text)};"
            f" this wattline knows versions up to {SCHEMA_VERSION}",
            hint="upgrade wattline to what wrote it, or use another home; nothing was changed",
        )
    return int(text)


def migrate(connection: Connection, to_version: int) -> None:
    """Inside the transaction that is open there."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = schema_version.name
    command.upgrade(config, f"{to_version:04}")
