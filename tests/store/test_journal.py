from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from wattline.errors import UnavailableError
from wattline.store import Entry, JournalAlteredError, LeaseLostError, Store, open_store
from wattline.store.chain import chain

RECORDS = 12
SEQS = st.integers(1, RECORDS)
FIELDS = ("at", "kind", "project", "actor", "schema", "previous_hash", "hash", "payload")
Change = Callable[[sqlite3.Connection], object]


def an_entry(number: int = 0) -> Entry:
    payload = b'{"n":%d}' % number
    return Entry(at=1000.0 + number, kind=f"kind-{number}", project="p", actor="a", schema=1, payload=payload)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store with twelve records and a snapshot, closed and complete."""
    home = tmp_path_factory.mktemp("written")
    with open_store(home) as store:
        store.lease.try_acquire("test", ttl_seconds=30)
        store.journal.append([an_entry(number) for number in range(RECORDS)])
        store.journal.save_snapshot(5, "digest", b"state at five")
    return home / "wattline.db"


def first_bad_seq(written: Path, change: Change) -> int:
    """Alter a copy behind the store's back; which record does verify() name?"""
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "wattline.db"
        shutil.copy(written, file)
        with closing(sqlite3.connect(file)) as connection, connection:
            change(connection)
        with open_store(home) as store, pytest.raises(JournalAlteredError) as caught:
            store.journal.verify()
        return caught.value.seq


@settings(max_examples=25, deadline=None)
@given(seq=SEQS, byte=st.integers(0, 6), bit=st.integers(0, 7))
def test_one_flipped_bit_in_a_payload_is_found(written: Path, seq: int, byte: int, bit: int) -> None:
    def flip(connection: sqlite3.Connection) -> None:
        ((payload,),) = connection.execute("SELECT payload FROM journal WHERE seq = ?", [seq])
        altered = bytearray(payload)
        altered[byte] ^= 1 << bit
        connection.execute("UPDATE journal SET payload = ? WHERE seq = ?", [bytes(altered), seq])

    assert first_bad_seq(written, flip) == seq


@settings(max_examples=15, deadline=None)
@given(seq=SEQS)
def test_a_dropped_record_is_found_the_last_one_too(written: Path, seq: int) -> None:
    def drop(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM journal WHERE seq = ?", [seq])

    assert first_bad_seq(written, drop) == seq


@settings(max_examples=20, deadline=None)
@given(pair=st.tuples(SEQS, SEQS).filter(lambda pair: pair[0] < pair[1]))
def test_two_swapped_records_are_found(written: Path, pair: tuple[int, int]) -> None:
    def swap(connection: sqlite3.Connection) -> None:
        for old, new in ((pair[0], -1), (pair[1], pair[0]), (-1, pair[1])):
            connection.execute("UPDATE journal SET seq = ? WHERE seq = ?", [new, old])

    assert first_bad_seq(written, swap) == pair[0]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [0, 7.25, "text", b"\xff" * 32])
def test_any_other_value_in_any_column_is_found(written: Path, field: str, value: object) -> None:
    def alter(connection: sqlite3.Connection) -> None:
        connection.execute(f"UPDATE journal SET {field} = ? WHERE seq = 4", [value])

    assert first_bad_seq(written, alter) == 4


def test_a_record_rewritten_with_a_hash_that_fits_it_is_found_at_the_next(written: Path) -> None:
    def rewrite(connection: sqlite3.Connection) -> None:
        ((previous,),) = connection.execute("SELECT previous_hash FROM journal WHERE seq = 4")
        (forged,) = chain([an_entry(99)], last_seq=3, last_hash=previous)
        columns = ", ".join(f"{field} = ?" for field in FIELDS)
        values = [getattr(forged, field) for field in FIELDS]
        connection.execute(f"UPDATE journal SET {columns} WHERE seq = 4", values)

    assert first_bad_seq(written, rewrite) == 5


def test_text_that_is_no_text_is_found(written: Path) -> None:
    change = "UPDATE journal SET kind = CAST(x'ff' AS TEXT) WHERE seq = 4"
    assert first_bad_seq(written, lambda connection: connection.execute(change)) == 4


@pytest.mark.parametrize(
    ("change", "seq"),
    [
        ("DELETE FROM journal WHERE seq > 8", 9),
        ("DELETE FROM journal", 1),
        ("DELETE FROM journal_head", 1),
        ("UPDATE journal_head SET hash = x'00'", RECORDS),
        (f"INSERT INTO journal SELECT {RECORDS + 1}, {', '.join(FIELDS)} FROM journal WHERE seq = 3", 13),
    ],
)
def test_a_cut_tail_a_lost_head_and_an_intruder_are_found(written: Path, change: str, seq: int) -> None:
    assert first_bad_seq(written, lambda connection: connection.execute(change)) == seq


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE snapshots SET payload = x'00'",
        "UPDATE snapshots SET digest = 'other'",
        "UPDATE journal SET hash = x'00' WHERE seq = 5",
        "DELETE FROM journal WHERE seq = 5",
    ],
)
def test_a_snapshot_holds_only_for_the_history_it_was_folded_from(
    written: Path, tmp_path: Path, change: str
) -> None:
    shutil.copy(written, tmp_path / "wattline.db")
    with closing(sqlite3.connect(tmp_path / "wattline.db")) as connection, connection:
        connection.execute(change)
    with open_store(tmp_path) as store, pytest.raises(JournalAlteredError, match="record 5"):
        store.journal.latest_snapshot()


def test_an_append_does_not_overwrite_an_intruder(written: Path, tmp_path: Path) -> None:
    shutil.copy(written, tmp_path / "wattline.db")
    with closing(sqlite3.connect(tmp_path / "wattline.db")) as connection, connection:
        connection.execute(f"INSERT INTO journal SELECT 13, {', '.join(FIELDS)} FROM journal WHERE seq = 3")
    with open_store(tmp_path) as store:
        store.lease.try_acquire("test", ttl_seconds=30)
        with pytest.raises(JournalAlteredError, match="record 13"):
            store.journal.append([an_entry()])


def test_nothing_is_written_without_the_lease(where: str) -> None:
    with open_store(where) as store:
        with pytest.raises(LeaseLostError, match="not acquired"):
            store.journal.append([an_entry()])
        with pytest.raises(LeaseLostError, match="not acquired"):
            store.journal.save_snapshot(1, "digest", b"")
        assert store.journal.last_seq() == 0


def test_an_append_that_cannot_settle_its_messages_writes_nothing(store: Store) -> None:
    store.inbox.put("there", "submit", b"{}")
    with pytest.raises(Exception, match="only 1 of them were pending"):
        store.journal.append([an_entry()], settle=["there", "not-there"])
    assert store.journal.last_seq() == 0
    assert [message.id for message in store.inbox.take(10)] == ["there"]


def test_large_payloads_are_read_a_few_at_a_time(store: Store) -> None:
    large = Entry(at=1, kind="k", project="", actor="", schema=1, payload=bytes(5 * 1024 * 1024))
    store.journal.append([large] * 5)
    assert [(record.seq, len(record.payload)) for record in store.journal.read()] == [
        (seq, 5 * 1024 * 1024) for seq in range(1, 6)
    ]


def test_a_full_disk_is_named_and_the_append_is_undone(home: Path) -> None:
    store = open_store(home)
    assert store.lease.try_acquire("test", ttl_seconds=30)
    store.journal.append([an_entry()])
    database = store._database
    database.close()
    event.listen(
        database._reader, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count=30")
    )
    large = Entry(at=1, kind="k", project="", actor="", schema=1, payload=bytes(1024 * 1024))
    with pytest.raises(UnavailableError, match="no room left on its disk") as caught:
        store.journal.append([an_entry(), large])
    assert caught.value.hint is not None
    assert "free space" in caught.value.hint
    assert store.journal.verify() == 1
    store.close()
