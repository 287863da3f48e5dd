"""What only PostgreSQL can do wrong: be elsewhere, be stopped, be set up badly, and know a password."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from postgres import PASSWORD, PostgresServer
from wattline.errors import UnavailableError, UsageError, WattlineError
from wattline.store import DatabaseAwayError, Entry, Store, open_store
from wattline.store.schema import inbox

pytestmark = pytest.mark.needs("initdb")


def an_entry(number: int = 0) -> Entry:
    return Entry(at=1.0, kind="k", project="p", actor="a", schema=1, payload=b"%d" % number)


@pytest.fixture
def store(postgres: PostgresServer) -> Iterator[Store]:
    with open_store(postgres.empty_store()) as opened:
        assert opened.lease.try_acquire("test", ttl_seconds=30)
        yield opened


def setting(store: Store, name: str, *, writes: bool = True) -> str:
    database = store._database
    with database.writing() if writes else database.reading() as connection:
        return str(connection.exec_driver_sql(f"SHOW {name}").scalar_one())


def test_a_commit_waits_for_the_disk_and_everything_has_a_limit(store: Store) -> None:
    assert setting(store, "synchronous_commit") == "on"
    for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
        assert setting(store, name) == "30s"


@pytest.mark.parametrize(("chosen", "kept"), [("off", "on"), ("remote_apply", "remote_apply")])
def test_commits_are_made_durable_but_never_less_than_somebody_chose(
    postgres: PostgresServer, chosen: str, kept: str
) -> None:
    name = postgres.new_database()
    postgres.run(f"ALTER DATABASE {name} SET synchronous_commit = {chosen}")
    with open_store(postgres.url(name)) as store:
        assert setting(store, "synchronous_commit") == kept


def test_a_reader_sees_one_moment_and_a_writer_the_newest(store: Store) -> None:
    assert setting(store, "transaction_isolation", writes=False) == "repeatable read"
    assert setting(store, "transaction_isolation") == "read committed"
    with store._database.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM journal").scalar() == 0
        store.journal.append([an_entry()])
        assert connection.exec_driver_sql("SELECT count(*) FROM journal").scalar() == 0


def test_a_server_that_does_not_wait_for_its_disk_is_refused(postgres: PostgresServer) -> None:
    url = postgres.empty_store()
    try:
        postgres.run("ALTER SYSTEM SET fsync = off")
        reload_until(postgres, "off")
        with pytest.raises(UnavailableError, match="fsync=off"):
            open_store(url)
    finally:
        postgres.run("ALTER SYSTEM RESET fsync")
        reload_until(postgres, "on")


def reload_until(postgres: PostgresServer, value: str) -> None:
    postgres.run("SELECT pg_reload_conf()")
    give_up_at = time.monotonic() + 20
    while postgres.run("SHOW fsync") != [(value,)]:
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def test_an_encoding_that_cannot_hold_all_names_is_refused(postgres: PostgresServer) -> None:
    name = postgres.new_database("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(UnavailableError, match="encoding is LATIN1") as caught:
        open_store(postgres.url(name))
    assert "createdb" in str(caught.value.hint)
    assert postgres.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", name) == [(0,)]


def everything_said(error: BaseException) -> str:
    """As a log with tracebacks would have it, causes included."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda url: url.replace(":never", ":Never"), "refused this user"),
        (lambda url: url.replace(f":{PASSWORD}", ""), "refused this user"),
        (lambda url: f"{url}-not-there", "does not exist"),
        (lambda url: url.replace("127.0.0.1", "no-such-host.invalid"), "cannot be reached"),
        (lambda url: f"{url}?sslmode=sometimes", "has an unknown option"),
        (lambda url: f"{url}?cheese=yes", "has an unknown option"),
    ],
)
def test_what_hinders_a_connection_is_said_in_words_without_the_password(
    postgres: PostgresServer, spoil: Callable[[str], str], words: str
) -> None:
    with pytest.raises(UnavailableError, match=words) as caught:
        open_store(spoil(postgres.url()))
    assert caught.value.hint
    assert PASSWORD not in everything_said(caught.value).replace("Never", "never")


@pytest.mark.parametrize(
    "url", ["postgresql://u@h/d?password=never-to-be-printed", "postgresql://u:never-to-be-printed@h:x/d"]
)
def test_a_url_with_the_password_in_a_wrong_place_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UsageError, match="database") as caught:
        open_store(url)
    assert PASSWORD not in everything_said(caught.value)


def test_nothing_of_a_store_shows_its_password(store: Store) -> None:
    shown = f"{store!r} {store._database!r} {store._database._reader!r} {store._database._writer!r}"
    assert "127.0.0.1" in shown
    assert PASSWORD not in shown


def test_a_user_who_may_not_is_told_so(postgres: PostgresServer) -> None:
    url = postgres.empty_store()
    postgres.run("DROP ROLE IF EXISTS guest")
    postgres.run(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    with pytest.raises(UnavailableError, match="does not let this user") as caught:
        open_store(url.replace("//wattline:", "//guest:"))
    assert "GRANT" in str(caught.value.hint)


def test_a_database_that_is_not_ours_is_refused_and_left_alone(postgres: PostgresServer) -> None:
    name = postgres.new_database()
    postgres.run("CREATE TABLE recipes (name text)", name)
    with pytest.raises(UnavailableError, match="belongs to something else: it has the table 'recipes'"):
        open_store(postgres.url(name))
    assert postgres.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", name) == [("recipes",)]


def test_a_message_that_commits_after_later_ones_were_taken_is_not_passed_over(store: Store) -> None:
    late = store._database.writing()
    connection = late.__enter__()
    connection.execute(insert(inbox).values(id="late", kind="k", payload=b""))
    assert store.inbox.put("quick", "k", b"")
    assert [message.id for message in store.inbox.take(10)] == ["quick"]
    store.journal.append([an_entry()], settle=["quick"])
    late.__exit__(None, None, None)
    assert [message.id for message in store.inbox.take(10)] == ["late"]
    store.journal.append([an_entry()], settle=["late"])
    assert store.inbox.take(10) == []


def test_two_that_put_the_same_message_at_once_have_put_it_once(store: Store) -> None:
    answers: list[bool] = []
    first = store._database.writing()
    connection = first.__enter__()
    connection.execute(insert(inbox).values(id="same", kind="k", payload=b"first"))
    second = threading.Thread(target=lambda: answers.append(store.inbox.put("same", "k", b"second")))
    second.start()
    second.join(0.2)
    assert second.is_alive(), "it must wait for what becomes of the first"
    first.__exit__(None, None, None)
    second.join(20)
    assert answers == [False]
    assert [message.payload for message in store.inbox.take(10)] == [b"first"]


def test_a_deadlock_is_named_and_nothing_was_written(store: Store, postgres: PostgresServer) -> None:
    first = store._database.writing()
    connection = first.__enter__()
    connection.execute(insert(inbox).values(id="a", kind="k", payload=b""))
    errors: list[WattlineError] = []

    def cross() -> None:
        try:
            with store._database.writing() as other:
                other.execute(insert(inbox).values(id="b", kind="k", payload=b""))
                other.execute(insert(inbox).values(id="a", kind="k", payload=b""))
        except WattlineError as error:
            errors.append(error)
        except IntegrityError:
            pass  # the first was chosen to end: then this one finds its key there

    thread = threading.Thread(target=cross)
    thread.start()
    give_up_at = time.monotonic() + 20
    while not postgres.run("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert time.monotonic() < give_up_at, "the other never came to wait"
        time.sleep(0.02)
    try:
        connection.execute(insert(inbox).values(id="b", kind="k", payload=b""))
        first.__exit__(None, None, None)
    except Exception as error:  # noqa: BLE001
        with pytest.raises(UnavailableError) as caught:
            first.__exit__(type(error), error, error.__traceback__)
        errors.append(caught.value)
    thread.join(20)
    assert len(errors) == 1
    assert "wait for each other" in str(errors[0])


def test_a_lost_connection_is_replaced(store: Store, postgres: PostgresServer) -> None:
    store.journal.append([an_entry()])
    ours = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'wattline'"
    postgres.run(ours)
    assert store.inbox.put("id", "k", b"")
    postgres.run(ours)
    assert store.journal.append([an_entry()]) == 2
    with pytest.raises(DatabaseAwayError, match="not known"):
        lose_in_the_middle(store, lambda: postgres.run(ours))


def lose_in_the_middle(store: Store, lose: Callable[[], object]) -> None:
    with store._database.writing() as connection:
        lose()
        connection.exec_driver_sql("SELECT 1")


def test_an_append_whose_answer_was_lost_is_found_again_and_not_done_twice(
    store: Store, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection goes away right after the server has committed, and right before."""
    dialect = store._database.dialect
    commit = dialect.do_commit
    for number, is_committed in enumerate([True, False, True]):
        lost: list[bool] = []

        def lose(connection: Any, is_committed: bool = is_committed, lost: list[bool] = lost) -> None:
            if is_committed or lost:
                commit(connection)
            if not lost:
                lost.append(True)
                raise psycopg.OperationalError("server closed the connection unexpectedly")

        with monkeypatch.context() as patch:
            patch.setattr(dialect, "do_commit", lose)
            patch.setattr(dialect, "is_disconnect", lambda *_: True)
            assert store.journal.append([an_entry(number)]) == number + 1
        assert lost
    assert [record.payload for record in store.journal.read()] == [b"0", b"1", b"2"]
    assert store.journal.verify() == 3


SERVER = """
import socket, sys, time
name, url, ttl_seconds = sys.argv[1:]
socket.gethostname = lambda: name  # as if each had a machine of its own: only the time to live can tell
from wattline.store import Entry, LeaseLostError, open_store
store = open_store(url)
while (token := store.lease.try_acquire(name, float(ttl_seconds))) is None:
    time.sleep(0.05)
print("leads", token.epoch, flush=True)
while True:
    store.lease.renew(token)
    seq = store.journal.append([Entry(at=1, kind="k", project="p", actor=name, schema=1, payload=b"")])
    print("wrote", seq, flush=True)
    time.sleep(0.05)
"""


def start_server(name: str, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SERVER, name, url, "2"], stdout=subprocess.PIPE, text=True)


def test_a_standing_by_server_takes_over_when_the_first_was_killed(postgres: PostgresServer) -> None:
    url = postgres.empty_store()
    with start_server("one", url) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "leads 1\n"
        assert first.stdout.readline() == "wrote 1\n"
        with start_server("two", url) as second, open_store(url) as store:
            assert second.stdout is not None
            time.sleep(3)  # longer than the time to live: who renews keeps it
            info = store.lease.current()
            assert info is not None
            assert info.holder == "one"
            first.kill()
            wrote = [int(line.split()[1]) for line in first.stdout if line.startswith("wrote")]
            assert second.stdout.readline() == "leads 2\n"
            took = int(second.stdout.readline().split()[1])
            second.kill()
            assert took in (wrote[-1] + 1, wrote[-1] + 2), "a write whose answer was lost may be there"
            assert store.journal.verify() >= took
            actors = [record.actor for record in store.journal.read()]
            assert actors == sorted(actors), "one after the other, never mixed"
