from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from wattline.store import AuditEntry, Entry, Message, Receipt, Store, StoreRefusedError


def an_entry() -> Entry:
    return Entry(at=1, kind="k", project="p", actor="a", schema=1, payload=b"{}")


def test_messages_are_taken_in_the_order_they_were_put(store: Store) -> None:
    for number in range(5):
        assert store.inbox.put(f"id-{9 - number}", "submit", b"%d" % number)
    assert store.inbox.take(3) == [Message(f"id-{9 - n}", "submit", b"%d" % n) for n in range(3)]
    assert len(store.inbox.take(10)) == 5


def test_putting_an_id_again_changes_nothing_also_after_it_was_settled(store: Store) -> None:
    assert store.inbox.put("id", "submit", b"first") is True
    assert store.inbox.put("id", "submit", b"second") is False
    assert store.inbox.take(10) == [Message("id", "submit", b"first")]
    store.journal.append([an_entry()], settle=["id"])
    assert store.inbox.put("id", "submit", b"third") is False
    assert store.inbox.take(10) == []


def test_a_message_is_pending_until_the_append_that_answers_it(store: Store) -> None:
    assert store.inbox.status("id") is None
    store.inbox.put("id", "submit", b"{}")
    receipt = store.inbox.status("id")
    assert receipt is not None
    assert receipt.pending
    store.journal.append([an_entry(), an_entry()], settle=["id"])
    assert store.inbox.status("id") == Receipt("id", settled_seq=2)


def test_a_message_is_settled_once(store: Store) -> None:
    store.inbox.put("id", "submit", b"{}")
    with pytest.raises(StoreRefusedError, match="twice"):
        store.journal.append([an_entry()], settle=["id", "id"])
    store.journal.append([an_entry()], settle=["id"])
    with pytest.raises(StoreRefusedError, match="only 0 of them were pending"):
        store.journal.append([an_entry()], settle=["id"])
    assert store.journal.last_seq() == 1


def test_many_messages_are_settled_by_one_append(store: Store) -> None:
    ids = [f"id-{number}" for number in range(1203)]
    assert store.inbox.put_many([Message(i, "reading", b"") for i in ids]) == [True] * len(ids)
    store.journal.append([an_entry()], settle=ids[:1201])
    assert [message.id for message in store.inbox.take(10)] == ids[1201:]


def test_each_of_many_is_answered_for_itself(store: Store) -> None:
    store.inbox.put("b", "submit", b"earlier")
    batch = [Message("a", "submit", b"1"), Message("b", "submit", b"2"), Message("c", "submit", b"3")]
    batch += [Message("a", "submit", b"again")]
    assert store.inbox.put_many(batch) == [True, False, True, False]
    assert store.inbox.put_many(batch) == [False] * 4
    assert [(message.id, message.payload) for message in store.inbox.take(10)] == [
        ("b", b"earlier"),
        ("a", b"1"),
        ("c", b"3"),
    ]
    assert store.inbox.put_many([]) == []


def test_many_keep_the_order_they_were_given_in(store: Store) -> None:
    ids = [f"id-{number * 7919 % 2500}" for number in range(2500)]
    assert all(store.inbox.put_many([Message(i, "submit", b"") for i in ids]))
    assert [message.id for message in store.inbox.take(3000)] == ids


def test_of_many_threads_that_put_the_same_at_once_each_message_is_new_to_one(store: Store) -> None:
    batches = [[Message(f"{n}-{i}", "submit", b"") for i in range(3)] for n in range(12)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(store.inbox.put_many, batches)) == [[True] * 3] * 12
        assert list(pool.map(store.inbox.put_many, batches * 3)) == [[False] * 3] * 36
        contested = list(pool.map(lambda _: store.inbox.put("contested", "submit", b""), range(24)))
    assert sorted(contested) == [False] * 23 + [True]
    assert len(store.inbox.take(100)) == 37


def test_one_message_that_is_refused_keeps_all_of_its_batch_out(store: Store) -> None:
    with pytest.raises(StoreRefusedError):
        store.inbox.put_many([Message("good", "submit", b""), Message("", "submit", b"")])
    assert store.inbox.take(10) == []


def test_who_handed_over_is_written_down_in_the_same_commit(store: Store) -> None:
    call = AuditEntry(at=1, actor="ci", project="nlp", action="run.submit", subject="a", outcome="accepted")
    assert store.inbox.put_many([Message("a", "submit", b"")], audit=[call]) == [True]
    assert [record.subject for record in store.audit.read()] == ["a"]
    with pytest.raises(StoreRefusedError):
        store.inbox.put_many([Message("two\nlines", "submit", b"")], audit=[call])
    assert len(store.audit.read()) == 1


@pytest.mark.parametrize(("message_id", "kind"), [("", "k"), ("x" * 201, "k"), ("id", "two\nlines")])
def test_a_message_without_a_usable_name_is_refused(store: Store, message_id: str, kind: str) -> None:
    with pytest.raises(StoreRefusedError):
        store.inbox.put(message_id, kind, b"")
    assert store.inbox.take(1) == []


def test_another_process_hands_over_work_while_the_writer_writes(store: Store, where: str) -> None:
    script = """
import sys
from wattline.store import open_store
with open_store(sys.argv[1]) as store:
    for number in range(40):
        assert store.inbox.put(f"id-{number}", "submit", b"%d" % number)
        assert not store.inbox.put(f"id-{number}", "submit", b"again")
"""
    answered: list[bytes] = []
    with subprocess.Popen([sys.executable, "-c", script, where]) as other:
        done = False
        while not done:
            done = other.poll() is not None
            messages = store.inbox.take(7)
            if messages:
                store.journal.append([an_entry()], settle=[message.id for message in messages])
                answered += [message.payload for message in messages]
                done = False
    assert other.returncode == 0
    assert answered == [b"%d" % number for number in range(40)]
