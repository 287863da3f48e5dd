"""What every journal promises: in memory, in SQLite, in PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattline.store import Entry, Journal, MemoryJournal, Snapshot, StoreRefusedError, open_store
from wattline.store.chain import GENESIS_HASH
from wattline.store.records import MAX_PAYLOAD_BYTES

NAMES = st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=20)
ENTRIES = st.builds(
    Entry,
    at=st.floats(allow_nan=False, allow_infinity=False),
    kind=NAMES,
    project=NAMES,
    actor=NAMES,
    schema=st.integers(0, 2**32 - 1),
    payload=st.binary(max_size=200),
)


def an_entry(number: int = 0, kind: str = "reading") -> Entry:
    return Entry(at=1000.0 + number, kind=kind, project="nlp", actor="loop", schema=1, payload=b"%d" % number)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("migrated")
    open_store(home).close()
    return home / "wattline.db"


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.needs("initdb"))])
def journal(request: pytest.FixtureRequest, tmp_path: Path, migrated: Path) -> Iterator[Journal]:
    if request.param == "memory":
        yield MemoryJournal()
        return
    where = str(tmp_path)
    if request.param == "sqlite":
        shutil.copy(migrated, tmp_path)
    else:
        where = request.getfixturevalue("postgres").empty_store()
    with open_store(where) as store:
        assert store.lease.try_acquire("test", ttl_seconds=30)
        yield store.journal


def test_an_empty_journal_is_whole(journal: Journal) -> None:
    assert journal.last_seq() == 0
    assert list(journal.read()) == []
    assert journal.verify() == 0
    assert journal.latest_snapshot() is None


def test_records_come_back_in_order_as_they_were_given(journal: Journal) -> None:
    assert journal.append([an_entry(1), an_entry(2)]) == 2
    assert journal.append([an_entry(3)]) == 3
    records = list(journal.read())
    assert [record.seq for record in records] == [1, 2, 3]
    assert [(record.at, record.payload) for record in records] == [
        (1001.0, b"1"),
        (1002.0, b"2"),
        (1003.0, b"3"),
    ]
    assert {(record.kind, record.project, record.actor, record.schema) for record in records} == {
        ("reading", "nlp", "loop", 1)
    }


def test_each_record_carries_the_hash_of_the_one_before(journal: Journal) -> None:
    journal.append([an_entry(number) for number in range(5)])
    records = list(journal.read())
    assert records[0].previous_hash == GENESIS_HASH
    assert [record.previous_hash for record in records[1:]] == [record.hash for record in records[:-1]]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(ENTRIES, max_size=4), max_size=4))
def test_whatever_was_appended_verifies_and_chains_as_in_memory(
    journal: Journal, batches: list[list[Entry]]
) -> None:
    already = list(journal.read())
    for batch in batches:
        journal.append(batch)
    offered = [entry for batch in batches for entry in batch]
    kept = list(journal.read(after_seq=len(already)))
    assert [(r.at, r.kind, r.project, r.actor, r.schema, r.payload) for r in kept] == [
        (e.at, e.kind, e.project, e.actor, e.schema, e.payload) for e in offered
    ]
    assert journal.verify() == len(already) + len(offered)
    assert journal.last_seq() == len(already) + len(offered)


def test_reading_starts_after_a_seq_and_ends_at_a_limit(journal: Journal) -> None:
    journal.append([an_entry(number) for number in range(10)])
    assert [record.seq for record in journal.read(after_seq=4, limit=3)] == [5, 6, 7]
    assert [record.seq for record in journal.read(after_seq=8)] == [9, 10]
    assert list(journal.read(limit=0)) == []
    assert list(journal.read(after_seq=10)) == []


def test_reading_can_be_narrowed_to_kinds(journal: Journal) -> None:
    journal.append([an_entry(number, kind) for number, kind in enumerate("abcab")])
    assert [record.seq for record in journal.read(kinds=["a"])] == [1, 4]
    assert [record.seq for record in journal.read(kinds=["c", "b"], limit=2)] == [2, 3]
    assert list(journal.read(kinds=[])) == []


def test_more_records_than_one_batch_are_read_without_gap(journal: Journal) -> None:
    journal.append([an_entry(number) for number in range(2500)])
    assert [record.seq for record in journal.read()] == list(range(1, 2501))
    assert len(list(journal.read(limit=1700))) == 1700


def test_a_reader_may_append_while_it_reads(journal: Journal) -> None:
    journal.append([an_entry()])
    for record in journal.read():
        if record.seq < 5:
            journal.append([an_entry(record.seq)])
    assert journal.verify() == 5


def test_appending_nothing_changes_nothing(journal: Journal) -> None:
    journal.append([an_entry()])
    assert journal.append([]) == 1
    assert journal.verify() == 1


def test_a_payload_may_be_as_large_as_the_limit_and_no_larger(journal: Journal) -> None:
    largest = bytes(MAX_PAYLOAD_BYTES)
    journal.append([Entry(at=1, kind="k", project="", actor="", schema=1, payload=largest)])
    assert next(journal.read()).payload == largest
    with pytest.raises(StoreRefusedError, match="16777216 bytes, got 16777217"):
        Entry(at=1, kind="k", project="", actor="", schema=1, payload=largest + b"x")


def test_messages_cannot_be_settled_without_saying_what_was_done(journal: Journal) -> None:
    with pytest.raises(StoreRefusedError, match="without a journal entry"):
        journal.append([], settle=["m"])
    with pytest.raises(StoreRefusedError, match="inbox"):
        journal.append([an_entry()], settle=["never-put"])
    assert journal.last_seq() == 0


def test_the_latest_snapshot_is_the_one_with_the_highest_seq(journal: Journal) -> None:
    journal.append([an_entry(number) for number in range(9)])
    journal.save_snapshot(6, "digest-6", b"six")
    journal.save_snapshot(3, "digest-3", b"three")
    assert journal.latest_snapshot() == Snapshot(6, "digest-6", b"six")
    assert journal.latest_snapshot(before_seq=6) == Snapshot(3, "digest-3", b"three")
    assert journal.latest_snapshot(before_seq=3) is None


def test_saving_a_snapshot_again_is_the_same_snapshot(journal: Journal) -> None:
    journal.append([an_entry()])
    journal.save_snapshot(1, "digest", b"state")
    journal.save_snapshot(1, "digest", b"state")
    assert journal.latest_snapshot() == Snapshot(1, "digest", b"state")


def test_one_history_cannot_have_two_states(journal: Journal) -> None:
    journal.append([an_entry()])
    journal.save_snapshot(1, "digest", b"state")
    with pytest.raises(StoreRefusedError, match="'digest', now offered with 'other'"):
        journal.save_snapshot(1, "other", b"another state")
    assert journal.latest_snapshot() == Snapshot(1, "digest", b"state")


@pytest.mark.parametrize("seq", [0, 2, -1])
def test_a_snapshot_of_what_was_not_journaled_is_refused(journal: Journal, seq: int) -> None:
    journal.append([an_entry()])
    with pytest.raises(StoreRefusedError, match="records 1 to 1"):
        journal.save_snapshot(seq, "digest", b"state")
