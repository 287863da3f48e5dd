from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from wattline.errors import UnavailableError
from wattline.store import Entry, Role, Store, open_store
from wattline.store.migrating import migrate
from wattline.store.opening import connect
from wattline.store.schema import SCHEMA_VERSION, metadata, schema_version
from wattline.store.sqlite import SqliteDatabase


def run_sql(home: Path, *statements: str) -> None:
    with closing(sqlite3.connect(home / "wattline.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_the_migrations_make_the_tables_the_code_expects(fresh: str) -> None:
    with open_store(fresh) as store, store._database.reading() as connection:
        options = {"version_table": schema_version.name, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == f"{SCHEMA_VERSION:04}"


def make_old_store(where: str, version: int) -> None:
    """A store of an earlier version with a journal, a snapshot and messages."""
    database = connect(where)
    with database.writing() as connection:
        migrate(connection, version)
    store = Store(database)
    assert store.lease.try_acquire("old", ttl_seconds=30)
    assert store.inbox.put("answered", "submit", b"1")
    assert store.inbox.put("waiting", "submit", b"2")
    store.journal.append([an_entry(number) for number in range(5)], settle=["answered"])
    store.journal.save_snapshot(5, "digest", b"state")
    store.close()


def an_entry(number: int) -> Entry:
    return Entry(at=float(number), kind="k", project="p", actor="a", schema=1, payload=b"%d" % number)


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_a_store_of_any_earlier_version_keeps_all_it_has_and_learns_the_new(fresh: str, version: int) -> None:
    make_old_store(fresh, version)
    with open_store(fresh) as store:
        assert store.journal.verify() == 5
        snapshot = store.journal.latest_snapshot()
        assert snapshot is not None
        assert snapshot.payload == b"state"
        assert [message.id for message in store.inbox.take(10)] == ["waiting"]
        assert store.lease.try_acquire("new", ttl_seconds=30) is not None
        assert store.journal.append([an_entry(6)], settle=["waiting"]) == 6
        secret = store.tokens.create("t", role=Role.OPERATOR, ttl_seconds=60, now=0)
        assert store.tokens.check(secret, 1) is not None
        store.audit.append(0, "t", "", "x", "s", "ok")
        assert len(store.audit.read()) == 1


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_an_older_store_that_may_only_be_read_is_read_as_it_is(tmp_path: Path, version: int) -> None:
    make_old_store(str(tmp_path), version)
    with open_store(f"sqlite:///file:{tmp_path}/wattline.db?mode=ro&uri=true") as store:
        assert store.journal.verify() == 5
        with store._database.reading() as connection:
            text = connection.exec_driver_sql(f"SELECT version_num FROM {schema_version.name}").scalar()
        assert text == f"{version:04}"


def test_a_newer_database_is_refused_with_both_versions_and_left_alone(home: Path) -> None:
    run_sql(home, f"UPDATE {schema_version.name} SET version_num = '0042'")
    before = (home / "wattline.db").read_bytes()
    with pytest.raises(UnavailableError, match=rf"schema version 42; .* up to {SCHEMA_VERSION}") as caught:
        open_store(home)
    assert caught.value.exit_code == 3
    assert caught.value.hint is not None
    assert "upgrade wattline" in caught.value.hint
    assert (home / "wattline.db").read_bytes() == before


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    run_sql(tmp_path, "CREATE TABLE recipes (name TEXT)")
    before = (tmp_path / "wattline.db").read_bytes()
    with pytest.raises(UnavailableError, match="belongs to something else: it has the table 'recipes'"):
        open_store(tmp_path)
    assert (tmp_path / "wattline.db").read_bytes() == before


@pytest.mark.parametrize(
    "damage", [f"UPDATE {schema_version.name} SET version_num = 'x'", f"DELETE FROM {schema_version.name}"]
)
def test_a_version_that_is_no_number_is_refused(home: Path, damage: str) -> None:
    run_sql(home, damage)
    with pytest.raises(UnavailableError, match="is not a number"):
        open_store(home)


def test_a_copy_without_a_write_ahead_log_gets_it_back(home: Path) -> None:
    run_sql(home, "PRAGMA journal_mode=DELETE")
    with open_store(home) as store:
        assert isinstance(store._database, SqliteDatabase)
        assert store._database.journal_mode() == "wal"


def test_a_current_database_opens_without_alembic_and_a_journal_in_memory_without_sqlalchemy(
    home: Path,
) -> None:
    script = """
import sys
import wattline.store
wattline.store.MemoryJournal()
assert "sqlalchemy" not in sys.modules
wattline.store.open_store(sys.argv[1]).close()
assert "sqlalchemy" in sys.modules
assert "alembic" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script, str(home)], check=True, timeout=60)


def test_two_processes_that_open_a_fresh_database_at_once_both_succeed(
    make_fresh: Callable[[], str], tmp_path: Path
) -> None:
    script = """
import sys, time
from pathlib import Path
import alembic.command
import wattline.store.opening
here, there, folder, *databases = sys.argv[1:]
for number, database in enumerate(databases):
    (Path(folder) / f"{here}-{number}").touch()
    give_up_at = time.monotonic() + 50
    while not (Path(folder) / f"{there}-{number}").exists():
        assert time.monotonic() < give_up_at, "the other process never came"
    with wattline.store.opening.open_store(database) as store:
        assert store.inbox.put(here, "hello", b"")
"""
    databases = [make_fresh() for _ in range(4)]
    openers = [
        subprocess.Popen([sys.executable, "-c", script, *names, str(tmp_path), *databases])
        for names in (("ada", "ben"), ("ben", "ada"))
    ]
    assert [opener.wait(timeout=60) for opener in openers] == [0, 0]
    for database in databases:
        with open_store(database) as store:
            assert {message.id for message in store.inbox.take(10)} == {"ada", "ben"}
