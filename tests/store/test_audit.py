from __future__ import annotations

import math

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import IntegrityError

from wattline.errors import UnavailableError
from wattline.store import AuditEntry, Role, Store, StoreRefusedError
from wattline.store.audit import MAX_DETAIL_CHARS, MAX_READ
from wattline.store.schema import audit


def an_entry(number: int = 0, project: str = "nlp") -> AuditEntry:
    return AuditEntry(
        at=1000.0 + number,
        actor="ci-nlp",
        project=project,
        action="run.submit",
        subject=f"run-{number}",
        outcome="accepted",
    )


def test_the_newest_is_read_first(store: Store) -> None:
    store.audit.append(1000.0, "ci-nlp", "nlp", "run.submit", "run-0", "accepted", "3 jobs")
    store.audit.append_many([an_entry(1), an_entry(2)])
    records = store.audit.read()
    assert [record.subject for record in records] == ["run-2", "run-1", "run-0"]
    oldest = records[-1]
    assert (oldest.at, oldest.actor, oldest.project, oldest.action, oldest.outcome, oldest.detail) == (
        1000.0,
        "ci-nlp",
        "nlp",
        "run.submit",
        "accepted",
        "3 jobs",
    )


def test_reading_goes_on_before_a_position_and_can_be_narrowed_to_a_project(store: Store) -> None:
    store.audit.append_many([an_entry(number, "nlp" if number % 2 else "vision") for number in range(10)])
    first = store.audit.read(3)
    assert [record.subject for record in first] == ["run-9", "run-8", "run-7"]
    after = store.audit.read(2, before=first[-1].position)
    assert [record.subject for record in after] == ["run-6", "run-5"]
    assert [record.subject for record in store.audit.read(2, project="vision")] == ["run-8", "run-6"]
    assert store.audit.read(project="nobody") == []


def test_reading_is_bounded(store: Store) -> None:
    store.audit.append_many([an_entry(number) for number in range(MAX_READ + 1)])
    assert len(store.audit.read(10**9)) == MAX_READ
    assert store.audit.read(0) == store.audit.read(-5) == []


def test_the_database_refuses_to_change_or_delete_a_row(store: Store) -> None:
    store.audit.append_many([an_entry()])
    for change in (update(audit).values(actor="nobody"), delete(audit)):
        with pytest.raises((UnavailableError, IntegrityError), match="append-only"):
            with store._database.writing() as connection:
                connection.execute(change)
    assert [record.actor for record in store.audit.read()] == ["ci-nlp"]


def test_what_looks_like_a_secret_is_struck_out_also_where_the_text_is_cut(store: Store) -> None:
    secret = store.tokens.create("t", role=Role.OPERATOR, ttl_seconds=60, now=0)
    for padding in (0, MAX_DETAIL_CHARS - 20, MAX_DETAIL_CHARS - 4):
        store.audit.append(0, secret, "", "token.check", f"x{secret}", "refused", "." * padding + secret)
    for record in store.audit.read():
        assert secret[3:8] not in repr(record)
        assert record.actor == "wl_***"


def test_what_is_too_long_or_unprintable_is_cut_and_never_lost(store: Store) -> None:
    store.audit.append(0, "a\0b\ud800\nc", "", "x", "s" * 10_000, "refused", "d" * 1_000_000)
    (record,) = store.audit.read()
    assert record.actor == "a�b��c"
    assert record.subject == "s" * 199 + "…"
    assert len(record.detail) == MAX_DETAIL_CHARS


def test_a_time_that_is_no_time_is_refused(store: Store) -> None:
    with pytest.raises(StoreRefusedError, match="finite"):
        store.audit.append(math.nan, "a", "", "x", "s", "ok")


def test_appending_nothing_is_fine(store: Store) -> None:
    store.audit.append_many([])
    assert store.audit.read() == []
