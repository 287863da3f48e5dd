from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from wattline.errors import UnavailableError
from wattline.store import open_store
from wattline.store.schema import SCHEMA_VERSION, metadata, schema_version


def run_sql(home: Path, *statements: str) -> None:
    with closing(sqlite3.connect(home / "wattline.db")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_the_migrations_make_the_tables_the_code_expects(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, store._database.reading() as connection:
        options = {"version_table": schema_version.name, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == f"{SCHEMA_VERSION:04}"


def test_a_newer_database_is_refused_with_both_versions_and_left_alone(home: Path) -> None:
    run_sql(home, f"UPDATE {schema_version.name} SET version_num = '0042'")
    before = (home / "wattline.db").read_bytes()
    with pytest.raises(UnavailableError, match=r"schema version 42; .* up to 1") as caught:
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


def test_two_processes_that_open_a_fresh_home_at_once_both_succeed(tmp_path: Path) -> None:
    script = """
import sys, time
from pathlib import Path
import alembic.command
import wattline.store.opening
here, there = sys.argv[2:]
for home in sorted(Path(sys.argv[1]).iterdir()):
    (home / here).touch()
    give_up_at = time.monotonic() + 50
    while not (home / there).exists():
        assert time.monotonic() < give_up_at, "the other process never came"
    with wattline.store.opening.open_store(home) as store:
        assert store.inbox.put(here, "hello", b"")
"""
    homes = [tmp_path / str(number) for number in range(5)]
    for home in homes:
        home.mkdir()
    openers = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path), *names])
        for names in (("ada", "ben"), ("ben", "ada"))
    ]
    assert [opener.wait(timeout=60) for opener in openers] == [0, 0]
    for home in homes:
        with open_store(home) as store:
            assert {message.id for message in store.inbox.take(10)} == {"ada", "ben"}
