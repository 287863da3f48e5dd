"""What is left when PostgreSQL itself is killed in the middle of work, and who goes on?"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import select

from postgres import PASSWORD, PostgresServer
from wattline.errors import UnavailableError
from wattline.store import DatabaseAwayError, Entry, Store, open_store
from wattline.store.postgresql import _CONNECT, _SESSION
from wattline.store.schema import writer_lease

pytestmark = pytest.mark.needs("initdb")


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """One with a single small database: coming back, it syncs every file it has."""
    with PostgresServer() as server:
        yield server


ENTRY = Entry(at=1.0, kind="k", project="p", actor="a", schema=1, payload=b"")
WRITER = """
import itertools, json, sys
from wattline.store import Entry, open_store
store = open_store(sys.argv[1])
assert store.lease.try_acquire("writer", ttl_seconds=3600)
for batch in itertools.count():
    entry = Entry(at=1.0, kind="k", project="p", actor="a", schema=1, payload=b"%d" % batch + b" " * 2000)
    print(store.journal.append([entry] * 3, settle=[m.id for m in store.inbox.take(5)]), flush=True)
"""


def test_a_writer_outlives_kill_9_of_the_database_and_nothing_committed_is_lost(
    postgres: PostgresServer,
) -> None:
    url = postgres.empty_store()
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    with subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = 0
        for number in range(3):
            with open_store(url) as store:
                assert store.inbox.put(f"message-{number}", "k", b"")
            for _ in range(chance.randrange(3, 40)):
                acknowledged = int(writer.stdout.readline())
            time.sleep(chance.uniform(0, 0.02))
            postgres.kill()
            postgres.start()
            with open_store(url) as store:
                assert store.journal.verify() >= acknowledged, f"seed {seed}"
        acknowledged = max(int(writer.stdout.readline()) for _ in range(5))
        assert writer.poll() is None
        writer.kill()
    with open_store(url) as store:
        assert store.journal.verify() >= acknowledged, f"seed {seed}"
        batches = [int(record.payload) for record in store.journal.read()]
        assert batches == [batch for batch in range(len(batches) // 3) for _ in range(3)], f"seed {seed}"
        assert store.inbox.take(10) == [], f"seed {seed}"


def test_a_database_that_stays_away_is_said_to_be(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wattline.store.database.AWAY_SECONDS", 0.5)
    with open_store(postgres.empty_store()) as store:
        assert store.lease.try_acquire("test", ttl_seconds=30)
        calls: list[Callable[[], object]] = [
            lambda: store.journal.append([ENTRY]),
            lambda: store.inbox.put("id", "k", b""),
            lambda: store.tokens.check("wl_x", 0),
            store.journal.last_seq,
        ]
        postgres.kill()
        try:
            for call in calls:
                with pytest.raises(DatabaseAwayError) as caught:
                    call()
                assert "check that PostgreSQL runs" in str(caught.value.hint)
                assert PASSWORD not in "".join(traceback.format_exception(caught.value))
        finally:
            postgres.start()
        assert store.journal.append([ENTRY]) == 1


def test_a_server_that_is_stopped_and_says_nothing_is_given_up(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(postgres.empty_store()) as store:
        monkeypatch.setattr("wattline.store.postgresql.WAIT_SECONDS", -13.0)  # and 15 s of grace
        monkeypatch.setattr("wattline.store.database.AWAY_SECONDS", 0.0)
        monkeypatch.setitem(_CONNECT, "connect_timeout", 2)
        store._database.close()
        assert store.lease.try_acquire("test", ttl_seconds=30)
        postgres.signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            with pytest.raises(DatabaseAwayError):
                store.journal.append([ENTRY])
            assert time.monotonic() - begun < 60
        finally:
            postgres.signal(signal.SIGCONT)
        monkeypatch.setattr("wattline.store.postgresql.WAIT_SECONDS", 30.0)
        assert store.journal.append([ENTRY]) in (1, 2)
        assert store.journal.verify() in (1, 2)


def test_a_client_that_stops_in_a_transaction_does_not_keep_others_waiting_for_ever(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = _SESSION.replace("session_timeout', '30s'", "session_timeout', '1s'")
    assert quick != _SESSION
    url = postgres.empty_store()
    with open_store(url) as patient:
        monkeypatch.setattr("wattline.store.postgresql._SESSION", quick)
        with open_store(url) as stopped:
            with pytest.raises(UnavailableError, match=r"lost in the middle|stood still"):
                stand_still(stopped, lambda: patient.lease.try_acquire("next", ttl_seconds=30))
        assert patient.lease.held is not None


def stand_still(store: Store, meanwhile: Callable[[], object]) -> None:
    with store._database.writing() as connection:
        connection.execute(select(writer_lease).with_for_update())
        assert meanwhile()
        connection.execute(select(writer_lease))
