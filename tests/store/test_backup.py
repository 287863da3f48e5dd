from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from wattline.errors import UnavailableError
from wattline.store import (
    Entry,
    JournalAlteredError,
    Message,
    ObjectStore,
    Role,
    Store,
    StoreRefusedError,
    back_up,
    open_store,
    restore,
)
from wattline.store.backup import BackupInfo
from wattline.store.migrating import migrate
from wattline.store.opening import connect
from wattline.store.schema import SCHEMA_VERSION, metadata

NOW = 1_800_000_000.0


def untold(_done: int, _whole: int) -> None:
    """Nobody looks."""


def an_entry(number: int) -> Entry:
    payload = b'{"n":%d}' % number
    return Entry(at=NOW + number, kind="k", project="nlp", actor="Zoë", schema=1, payload=payload)


def fill(store: Store) -> str:
    """Something in every table; returns the secret of a token."""
    assert store.lease.try_acquire("test", ttl_seconds=30)
    store.inbox.put_many([Message(f"m-{n}", "submit", b"%d" % n) for n in range(5)])
    store.journal.append([an_entry(number) for number in range(2500)], settle=["m-0", "m-2"])
    store.journal.save_snapshot(2000, "digest", bytes(range(256)) * 1000)
    secret = store.tokens.create("ci", role=Role.SUBMITTER, project="nlp", ttl_seconds=1e6, now=NOW)
    store.tokens.create("old", role=Role.AGENT, site="oslo", ttl_seconds=60, now=NOW)
    store.tokens.revoke("old", NOW + 1)
    store.audit.append(NOW, "ci", "nlp", "run.submit", "m-0", "accepted", "½ … done")
    return secret


def everything_in(where: str) -> dict[str, list[tuple[object, ...]]]:
    with open_store(where) as store, store._database.reading() as connection:
        return {
            table.name: [
                tuple(row) for row in connection.execute(table.select().order_by(*table.primary_key.columns))
            ]
            for table in metadata.sorted_tables
            if table.name != "writer_lease"
        }


def take(where: str, file: Path, *, replace: bool = False) -> BackupInfo:
    return back_up(where, file, objects=None, replace=replace, tell=untold)


def bring_back(file: Path, where: str, *, replace: bool = False) -> BackupInfo:
    return restore(file, where, objects=ObjectStore(file.parent / "objects"), replace=replace, tell=untold)


def test_all_comes_back_from_either_database_in_either(
    where: str, make_fresh: Callable[[], str], tmp_path: Path
) -> None:
    """`where` and `make_fresh` go through both kinds, so through all four ways."""
    with open_store(where) as store:
        secret = fill(store)
    taken = take(where, tmp_path / "backup")
    assert taken.counts["journal"] == taken.journal_seq == 2500
    assert (taken.counts["tokens"], taken.counts["audit"], taken.counts["inbox"]) == (2, 1, 5)
    there = make_fresh()
    assert bring_back(tmp_path / "backup", there) == taken
    assert everything_in(there) == everything_in(where)
    with open_store(there) as store:
        assert store.journal.verify() == 2500
        token = store.tokens.check(secret, NOW)
        assert token is not None
        assert token.name == "ci"


def test_a_restored_store_goes_on_where_the_other_was(
    store: Store, where: str, make_fresh: Callable[[], str], tmp_path: Path
) -> None:
    fill_without_lease = store.lease.held
    assert fill_without_lease is not None
    store.lease.release(fill_without_lease)
    fill(store)
    take(where, tmp_path / "backup")
    there = make_fresh()
    bring_back(tmp_path / "backup", there)
    with open_store(there) as restored:
        token = restored.lease.try_acquire("next", ttl_seconds=30)
        assert token is not None
        assert token.epoch == 3, "epochs go on: whoever wrote before is fenced"
        assert restored.inbox.put("m-0", "submit", b"") is False
        assert restored.inbox.put("m-9", "submit", b"") is True
        assert [message.id for message in restored.inbox.take(9)] == ["m-1", "m-3", "m-4", "m-9"]
        assert restored.journal.append([an_entry(1)], settle=["m-9"]) == 2501
        restored.audit.append(NOW, "ci", "nlp", "x", "y", "z")
        assert [record.action for record in restored.audit.read()] == ["x", "run.submit"]
        assert restored.journal.verify() == 2501


def test_a_backup_is_taken_while_somebody_writes_and_has_one_moment(
    where: str, make_fresh: Callable[[], str], tmp_path: Path
) -> None:
    script = """
import itertools, sys
from wattline.store import Entry, open_store
store = open_store(sys.argv[1])
assert store.lease.try_acquire("writer", ttl_seconds=30)
for number in itertools.count(1):
    store.inbox.put(f"m-{number}", "k", b"")
    entry = Entry(at=1.0, kind="k", project="", actor="", schema=1, payload=b"x" * 2000)
    print(store.journal.append([entry] * 20, settle=[f"m-{number}"]), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", script, where], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for number in range(3):
            seqs = [int(writer.stdout.readline()) for _ in range(10)]
            info = take(where, tmp_path / f"backup-{number}")
            assert info.journal_seq >= seqs[-1]
            assert info.journal_seq % 20 == 0, "whole appends"
        writer.kill()
    there = make_fresh()
    info = bring_back(tmp_path / "backup-2", there)
    with open_store(there) as store:
        assert store.journal.verify() == info.journal_seq
        settled = info.journal_seq // 20
        assert len(store.inbox.take(10)) == info.counts["inbox"] - settled
        assert store.lease.current() is None


def test_secrets_are_not_in_a_backup(where: str, tmp_path: Path) -> None:
    with open_store(where) as store:
        secret = fill(store)
    file = tmp_path / "backup"
    take(where, file)
    raw = zstandard.ZstdDecompressor().stream_reader(file.read_bytes()[18:]).read()
    assert b"nlp" in raw
    assert secret[3:20].encode() not in raw
    assert file.stat().st_mode & 0o777 == 0o600


def test_objects_travel_with_it_when_asked(home: Path, tmp_path: Path) -> None:
    here, there = ObjectStore(tmp_path / "here"), ObjectStore(tmp_path / "there")
    contents = [b"", b"small", os.urandom(3 * 1024 * 1024 + 17)]
    digests = [here.put_bytes(content) for content in contents]
    info = back_up(str(home), tmp_path / "backup", objects=here, replace=False, tell=untold)
    assert info.counts["objects"] == 3
    restore(tmp_path / "backup", str(home), objects=there, replace=False, tell=untold)
    for digest, content in zip(digests, contents, strict=True):
        with there.open(digest) as file:
            assert file.read() == content
    assert [digest for digest, _ in there.list()] == sorted(digests)


def test_a_damaged_object_is_named_and_no_backup_is_made(home: Path, tmp_path: Path) -> None:
    objects = ObjectStore(tmp_path / "objects")
    digest = objects.put_bytes(b"content")
    objects.path(digest).chmod(0o644)
    objects.path(digest).write_bytes(b"contenu")
    with pytest.raises(UnavailableError, match=digest):
        back_up(str(home), tmp_path / "backup", objects=objects, replace=False, tell=untold)
    assert not (tmp_path / "backup").exists()
    assert not list(tmp_path.glob(".backup*"))


def test_a_file_that_is_there_is_replaced_only_when_asked(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    file.write_text("mine")
    with pytest.raises(StoreRefusedError, match="there is one already"):
        take(str(home), file)
    assert file.read_text() == "mine"
    take(str(home), file, replace=True)
    assert file.read_bytes().startswith(b"wattline.backup.1\n")


@pytest.mark.parametrize("name", ["wattline.db", "wattline.db-wal", "../linked/wattline.db"])
def test_a_backup_is_never_written_over_the_database(home: Path, name: str) -> None:
    (home.parent / "linked").unlink(missing_ok=True)
    (home.parent / "linked").symlink_to(home)
    with pytest.raises(StoreRefusedError, match="the database itself"):
        take(str(home), home / name, replace=True)
    with open_store(home) as store:
        assert store.journal.verify() == 0


def test_progress_is_told_up_to_the_end(where: str, make_fresh: Callable[[], str], tmp_path: Path) -> None:
    with open_store(where) as store:
        fill(store)
    told: list[tuple[int, int]] = []
    file = tmp_path / "backup"
    back_up(where, file, objects=None, replace=False, tell=lambda done, whole: told.append((done, whole)))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert all(done <= whole for done, whole in told)
    assert told[-1][0] == told[-1][1]
    told.clear()
    objects = ObjectStore(tmp_path / "objects")
    restore(
        file,
        make_fresh(),
        objects=objects,
        replace=False,
        tell=lambda done, whole: told.append((done, whole)),
    )
    assert told[-1] == (file.stat().st_size, file.stat().st_size)


def test_a_restore_that_is_killed_leaves_the_target_as_it_was(where: str, tmp_path: Path) -> None:
    with open_store(where) as store:
        fill(store)
    take(where, tmp_path / "backup")
    with open_store(where) as store:
        store.inbox.put("after", "k", b"")
    before = everything_in(where)
    script = """
import sys
from pathlib import Path
from wattline.store import ObjectStore, restore
def tell(done, whole):
    print(done, flush=True)
    sys.stdin.readline()  # one for each that was seen, and no more
restore(Path(sys.argv[1]), sys.argv[2], objects=ObjectStore(Path("none")), replace=True, tell=tell)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "backup"), where]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as restoring:
        assert restoring.stdin is not None
        assert restoring.stdout is not None
        for _ in range(3):
            restoring.stdout.readline()
            restoring.stdin.write("on\n")
            restoring.stdin.flush()
        restoring.stdout.readline()
        restoring.kill()
    assert restoring.returncode == -9, "it was over before it could be killed"
    assert everything_in(where) == before


def test_a_store_that_has_something_is_replaced_only_when_asked(where: str, tmp_path: Path) -> None:
    with open_store(where) as store:
        fill(store)
    before = everything_in(where)
    take(where, tmp_path / "backup")
    with open_store(where) as store:
        assert store.lease.try_acquire("test", ttl_seconds=30)
        store.journal.append([an_entry(1)])
        store.audit.append(NOW, "ci", "nlp", "x", "y", "z")
    with pytest.raises(StoreRefusedError, match="is not empty: it has rows in journal, inbox, tokens, audit"):
        bring_back(tmp_path / "backup", where)
    assert len(everything_in(where)["journal"]) == 2501
    bring_back(tmp_path / "backup", where, replace=True)
    assert everything_in(where) == before


def test_a_store_that_somebody_writes_to_is_never_replaced(store: Store, where: str, tmp_path: Path) -> None:
    take(where, tmp_path / "backup")
    for replace in (False, True):
        with pytest.raises(StoreRefusedError, match=r"test on .* writes to it"):
            bring_back(tmp_path / "backup", where, replace=replace)
    store.journal.append([an_entry(1)])


def test_an_altered_journal_is_not_backed_up(home: Path, tmp_path: Path) -> None:
    with open_store(home) as store:
        fill(store)
        with store._database.writing() as connection:
            connection.exec_driver_sql("UPDATE journal SET payload = x'00' WHERE seq = 1200")
    with pytest.raises(JournalAlteredError, match="record 1200"):
        take(str(home), tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_any_flipped_byte_is_found_and_leaves_the_target_as_it_was(
    home: Path, tmp_path: Path, part: float
) -> None:
    with open_store(home) as store:
        fill(store)
    take(str(home), tmp_path / "backup")
    content = bytearray((tmp_path / "backup").read_bytes())
    content[int(part * len(content))] ^= 0x40
    (tmp_path / "bad").write_bytes(content)
    before = everything_in(str(home))
    with pytest.raises(UnavailableError, match="bad") as caught:
        bring_back(tmp_path / "bad", str(home), replace=True)
    assert caught.value.hint
    assert everything_in(str(home)) == before


def test_a_backup_that_was_cut_off_is_found(
    home: Path, make_fresh: Callable[[], str], tmp_path: Path
) -> None:
    with open_store(home) as store:
        fill(store)
    take(str(home), tmp_path / "backup")
    content = (tmp_path / "backup").read_bytes()
    there = make_fresh()
    for length in (0, 10, 18, 100, len(content) // 2, len(content) - 30):
        (tmp_path / "cut").write_bytes(content[:length])
        with pytest.raises(UnavailableError, match="cut"):
            bring_back(tmp_path / "cut", there)
    assert everything_in(there)["journal"] == []


@pytest.mark.parametrize(
    "content", [b"", b"wattline", b"SQLite format 3\0", b"wattline.backup.1\n" + b"\xff" * 99]
)
def test_a_file_that_is_no_backup_is_named(home: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UnavailableError, match="file"):
        bring_back(tmp_path / "file", str(home))
    with pytest.raises(UnavailableError, match="missing"):
        bring_back(tmp_path / "missing", str(home))


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_a_backup_of_an_earlier_version_becomes_a_store_of_today(
    fresh: str, make_fresh: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Written as that version would have: with its tables and its number."""
    database = connect(fresh)
    with database.writing() as connection:
        migrate(connection, version)
    old = Store(database)
    assert old.lease.try_acquire("old", ttl_seconds=30)
    old.inbox.put("m", "submit", b"")
    old.journal.append([an_entry(number) for number in range(7)])
    old.close()
    later = {2: ("tokens", "audit")}
    unknown = {name for since, names in later.items() if since > version for name in names}
    known = [table for table in metadata.sorted_tables if table.name not in unknown]
    with monkeypatch.context() as patch:
        patch.setattr("wattline.store.backup.SCHEMA_VERSION", version)
        patch.setattr("wattline.store.backup.metadata", type("Then", (), {"sorted_tables": known}))
        patch.setattr("wattline.store.backup.bring_up_to_date", lambda _: None)
        assert take(fresh, tmp_path / "backup").schema_version == version
    there = make_fresh()
    bring_back(tmp_path / "backup", there)
    with open_store(there) as store:
        assert store.journal.verify() == 7
        assert [message.id for message in store.inbox.take(9)] == ["m"]
        assert store.tokens.list() == []


def test_a_backup_of_a_later_version_is_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wattline.store.backup.SCHEMA_VERSION", SCHEMA_VERSION + 1)
    take(str(home), tmp_path / "backup")
    with pytest.raises(
        UnavailableError, match=f"schema version {SCHEMA_VERSION + 1}; .* up to {SCHEMA_VERSION}"
    ):
        bring_back(tmp_path / "backup", str(home))
