from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from wattline.errors import UnavailableError, UsageError
from wattline.store import open_store


def test_a_home_or_a_url_names_the_same_database(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.inbox.put("first", "event", b"{}")
    assert (tmp_path / "wattline.db").exists()
    for name in (str(tmp_path), f"sqlite:///{tmp_path}/wattline.db"):
        with open_store(name) as store:
            assert store.inbox.status("first") is not None


def test_what_is_committed_waits_for_the_disk(tmp_path: Path) -> None:
    with open_store(tmp_path) as store, store._database.reading() as connection:
        for pragma, value in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000


@pytest.mark.parametrize("url", ["mysql://db/wattline", "sqlite://", "sqlite:///:memory:", "://", "x://"])
def test_a_url_that_names_no_file_is_wrong_usage(url: str) -> None:
    with pytest.raises(UsageError, match="database"):
        open_store(url)


@pytest.mark.parametrize("content", [b"garbage " * 1000, b"xy", b"SQLite format 3\0" + b"\xff" * 4080])
def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "wattline.db"
    file.write_bytes(content)
    with pytest.raises(UnavailableError, match=r"wattline\.db") as caught:
        open_store(tmp_path)
    assert caught.value.hint
    assert file.read_bytes() == content


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    with open_store(tmp_path):
        pass
    with (tmp_path / "wattline.db").open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3996)
    with pytest.raises(UnavailableError, match="is damaged") as caught:
        open_store(tmp_path)
    assert caught.value.hint == "restore it from a backup"


def test_opening_keeps_the_locks_that_tell_others_the_store_is_in_use(tmp_path: Path) -> None:
    """Without them another process that closes the file deletes the log, and later commits with it."""
    file = tmp_path / "wattline.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")  # as left by a process that was killed before migrating
    visit = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM inbox'); c.close()"
    )
    with open_store(tmp_path) as store:
        subprocess.run([sys.executable, "-c", visit, str(file)], check=True, timeout=60)
        assert (tmp_path / "wattline.db-wal").exists()
        assert store.inbox.put("id", "submit", b"{}")
        subprocess.run([sys.executable, "-c", visit, str(file)], check=True, timeout=60)
    with open_store(tmp_path) as store:
        assert [message.id for message in store.inbox.take(10)] == ["id"]


@pytest.mark.parametrize("home", ["missing", "file", "file/below"])
def test_a_home_that_is_no_directory_is_named(tmp_path: Path, home: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnavailableError, match="cannot be opened") as caught:
        open_store(tmp_path / home)
    assert caught.value.hint is not None
    assert "directory must exist" in caught.value.hint


@pytest.mark.parametrize("exists", [False, True])
def test_a_home_that_may_not_be_written_is_named(exists: bool) -> None:
    """In a process of an ordinary user: root may write anywhere."""
    script = """
import os, sys
import alembic.command
import wattline.store.opening
from wattline.errors import UnavailableError
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    store = wattline.store.opening.open_store(sys.argv[1])
    store.lease.try_acquire("test", ttl_seconds=30)
except UnavailableError as error:
    print(error.hint)
"""
    with tempfile.TemporaryDirectory() as home:
        if exists:
            with open_store(home):
                pass
        Path(home).chmod(0o555)
        try:
            ran = subprocess.run(
                [sys.executable, "-c", script, home], capture_output=True, text=True, timeout=60, check=False
            )
        finally:
            Path(home).chmod(0o755)
        assert ran.returncode == 0, ran.stderr
        assert "this user" in ran.stdout
        assert (Path(home) / "wattline.db").exists() is exists


def test_a_store_that_lost_a_row_of_its_own_says_so(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        with store._database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM writer_lease")
        with pytest.raises(UnavailableError, match="lacks a row"):
            store.lease.current()
