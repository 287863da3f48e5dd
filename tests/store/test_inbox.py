from __future__ import annotations

import subprocess
import sys

import pytest
from sqlalchemy import insert

from wattline.store import Entry, Message, Receipt, Store, StoreRefusedError
from wattline.store.schema import inbox


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
    with store._database.writing() as connection:  # one commit, not 1203 waits for the disk
        connection.execute(insert(inbox), [{"id": i, "kind": "reading", "payload": b""} for i in ids])
    store.journal.append([an_entry()], settle=ids[:1201])
    assert [message.id for message in store.inbox.take(10)] == ids[1201:]


@pytest.mark.parametrize(("message_id", "kind"), [("", "k"), ("x" * 201, "k"), ("id", "two\nlines")])
def test_a_message_without_a_usable_name_is_refused(store: Store, message_id: str, kind: str) -> None:
    with pytest.raises(StoreRefusedError):
        store.inbox.put(message_id, kind, b"")
    assert store.inbox.take(1) == []


def test_another_process_hands_over_work_while_the_writer_writes(store: Store) -> None:
    script = """
import sys
from wattline.store import open_store
with open_store(sys.argv[1]) as store:
    for number in range(40):
        assert store.inbox.put(f"id-{number}", "submit", b"%d" % number)
        assert not store.inbox.put(f"id-{number}", "submit", b"again")
"""
    home = store._database.file.parent
    answered: list[bytes] = []
    with subprocess.Popen([sys.executable, "-c", script, str(home)]) as other:
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
