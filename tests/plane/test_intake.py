"""What is handed in: durable before it is answered, once for each id, many in one commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import event

from wattline.errors import UnavailableError
from wattline.plane import intake as module
from wattline.plane.intake import Intake
from wattline.state import Asked
from wattline.store import Store, open_store
from wattline.store.audit import AuditEntry


def a_word(number: int) -> Asked:
    return Asked(at=float(number), actor="ada", job=f"r{number}/train", want="pause")


def an_entry(number: int) -> AuditEntry:
    return AuditEntry(
        at=float(number), actor="ada", project="nlp", action="pause", subject=f"r{number}", outcome="accepted"
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path)


def test_what_is_answered_is_there_with_its_audit(tmp_path: Path, store: Store) -> None:
    intake = Intake(str(tmp_path))
    assert intake.put([("one", a_word(1)), ("two", a_word(2))], an_entry(1)).result(30) == (True, True)
    assert [message.id for message in store.inbox.take(10)] == ["one", "two"]
    assert [entry.subject for entry in store.audit.read()] == ["r1"]
    assert intake.put([("one", a_word(3))]).result(30) == (False,)
    assert intake.put([], an_entry(2)).result(30) == ()
    assert [entry.subject for entry in store.audit.read()] == ["r2", "r1"]
    intake.close()
    store.close()


def test_those_who_come_together_share_a_commit(tmp_path: Path, store: Store) -> None:
    intake, commits = Intake(str(tmp_path)), 0

    def count(_connection: object) -> None:
        nonlocal commits
        commits += 1

    event.listen(intake._store._database._reader, "commit", count)
    waiting = [intake.put([(f"m{number}", a_word(number))], an_entry(number)) for number in range(200)]
    assert all(one.result(60) == (True,) for one in waiting)
    assert len(store.inbox.take(1000)) == 200
    assert commits < 100
    intake.close()
    store.close()


def test_one_that_closes_writes_down_what_it_was_handed(tmp_path: Path, store: Store) -> None:
    intake = Intake(str(tmp_path))
    waiting = [intake.put([(f"m{number}", a_word(number))]) for number in range(50)]
    intake.close()
    assert all(one.done() for one in waiting)
    assert len(store.inbox.take(1000)) == 50
    store.close()


def test_a_line_that_is_too_long_is_refused_at_once(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 2)
    monkeypatch.setattr(Intake, "_run", lambda _self: None)
    intake = Intake(str(tmp_path))
    intake.put([("one", a_word(1))])
    intake.put([("two", a_word(2))])
    with pytest.raises(UnavailableError, match="wait to be written down"):
        intake.put([("three", a_word(3))])
    intake._store.close()
    store.close()
