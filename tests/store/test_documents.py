from __future__ import annotations

import hashlib

import pytest

from wattline.errors import UnavailableError, UsageError
from wattline.store import Store, StoreRefusedError


def test_the_latest_text_is_in_force_and_older_ones_stay(store: Store) -> None:
    old = store.put_document("policy", "active", "ä: 1\n")
    new = store.put_document("policy", "active", "a: 2\n")
    assert old == "sha256:" + hashlib.sha256("ä: 1\n".encode()).hexdigest()
    in_force = store.get_document("policy", "active")
    assert in_force is not None
    assert (in_force.digest, in_force.text, in_force.version) == (new, "a: 2\n", 2)
    before = store.get_document("policy", "active", old)
    assert before is not None
    assert before.text == "ä: 1\n"


def test_going_back_to_an_old_text_is_a_version_of_its_own(store: Store) -> None:
    for text in ("one", "two", "one", "one"):
        store.put_document("policy", "active", text)
    in_force = store.get_document("policy", "active")
    assert in_force is not None
    assert (in_force.text, in_force.version) == ("one", 3)


def test_names_and_kinds_do_not_mix(store: Store) -> None:
    digest = store.put_document("policy", "active", "text")
    assert store.get_document("facility", "active") is None
    assert store.get_document("policy", "other", digest) is None


def test_a_digest_that_is_none_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="64 lower-case hex"):
        store.get_document("policy", "active", "latest")


def test_a_document_has_a_largest_size(store: Store) -> None:
    store.put_document("policy", "active", "x" * 4 * 1024 * 1024)
    with pytest.raises(StoreRefusedError, match="got 4194305"):
        store.put_document("policy", "active", "x" * (4 * 1024 * 1024 + 1))


def test_an_altered_text_is_not_handed_out(store: Store) -> None:
    store.put_document("policy", "active", "cap: 100kW")
    with store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE documents SET text = 'cap: 900kW'")
    with pytest.raises(UnavailableError, match="does not match"):
        store.get_document("policy", "active")
