from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from wattline.store import Entry, LeaseLostError, Store, StoreRefusedError, WriterLease, open_store
from wattline.store.journal import SqlJournal
from wattline.store.process import identify_this_process


@dataclass
class Hall:
    """A store as two machines see it, with one clock that a test may set."""

    store: Store
    now: float = 1000.0

    def lease_from(self, hostname: str) -> WriterLease:
        process = replace(identify_this_process(), hostname=hostname)
        return WriterLease(self.store._database, process=process, clock=lambda _: self.now)

    def journal_of(self, lease: WriterLease) -> SqlJournal:
        return SqlJournal(self.store._database, lease)


@pytest.fixture
def hall(where: str) -> Iterator[Hall]:
    with open_store(where) as store:
        yield Hall(store)


def an_entry() -> Entry:
    return Entry(at=1, kind="k", project="p", actor="a", schema=1, payload=b"{}")


def test_one_process_gets_the_lease_and_the_next_must_wait(hall: Hall) -> None:
    lease = hall.lease_from("here")
    assert lease.current() is None
    token = lease.try_acquire("one", ttl_seconds=10)
    assert token is not None
    assert hall.lease_from("here").try_acquire("two", ttl_seconds=10) is None
    assert lease.try_acquire("one again", ttl_seconds=10) is None
    info = lease.current()
    assert info is not None
    assert (info.holder, info.epoch, info.expires_at) == ("one", token.epoch, 1010.0)


def test_epochs_only_grow_also_over_a_release(hall: Hall) -> None:
    lease = hall.lease_from("here")
    epochs = []
    for _ in range(3):
        token = lease.try_acquire("one", ttl_seconds=10)
        assert token is not None
        epochs.append(token.epoch)
        lease.release(token)
    assert epochs == [1, 2, 3]


def test_a_live_holder_on_this_machine_outlives_its_time_and_any_jump_of_the_clock(hall: Hall) -> None:
    assert hall.lease_from("here").try_acquire("one", ttl_seconds=10)
    hall.now += 1e9
    assert hall.lease_from("here").try_acquire("two", ttl_seconds=10) is None
    hall.now = 0
    assert hall.lease_from("here").try_acquire("two", ttl_seconds=10) is None


def test_a_holder_elsewhere_keeps_the_lease_exactly_for_its_time_to_live(hall: Hall) -> None:
    assert hall.lease_from("there").try_acquire("one", ttl_seconds=10)
    hall.now = 1009.99
    assert hall.lease_from("here").try_acquire("two", ttl_seconds=10) is None
    hall.now = 1010.0
    assert hall.lease_from("here").current() is None
    assert hall.lease_from("here").try_acquire("two", ttl_seconds=10) is not None


def test_renewing_counts_the_time_to_live_from_now(hall: Hall) -> None:
    there = hall.lease_from("there")
    token = there.try_acquire("one", ttl_seconds=10)
    assert token is not None
    hall.now = 1008
    there.renew(token)
    hall.now = 1017
    assert hall.lease_from("here").try_acquire("two", ttl_seconds=10) is None


def test_a_replaced_writer_can_neither_append_nor_snapshot_nor_renew(hall: Hall) -> None:
    there = hall.lease_from("there")
    stale = there.try_acquire("one", ttl_seconds=10)
    assert stale is not None
    hall.journal_of(there).append([an_entry()])
    hall.now = 1010
    here = hall.lease_from("here")
    assert here.try_acquire("two", ttl_seconds=10)
    with pytest.raises(LeaseLostError, match="epoch 1 is over: the newest epoch is 2"):
        hall.journal_of(there).append([an_entry()])
    with pytest.raises(LeaseLostError):
        hall.journal_of(there).save_snapshot(1, "digest", b"")
    with pytest.raises(LeaseLostError):
        there.renew(stale)
    assert hall.journal_of(here).append([an_entry()]) == 2
    assert hall.store.journal.verify() == 2


def test_releasing_a_lost_lease_leaves_the_new_holder_alone(hall: Hall) -> None:
    there = hall.lease_from("there")
    stale = there.try_acquire("one", ttl_seconds=10)
    assert stale is not None
    hall.now = 1010
    assert hall.lease_from("here").try_acquire("two", ttl_seconds=10)
    there.release(stale)
    info = hall.lease_from("here").current()
    assert info is not None
    assert info.holder == "two"


def test_after_a_release_nothing_can_be_appended(hall: Hall) -> None:
    lease = hall.lease_from("here")
    token = lease.try_acquire("one", ttl_seconds=10)
    assert token is not None
    lease.release(token)
    with pytest.raises(LeaseLostError):
        hall.journal_of(lease).append([an_entry()])
    with pytest.raises(LeaseLostError):
        lease.renew(token)


def test_closing_the_store_frees_its_lease_at_once(where: str) -> None:
    with open_store(where) as first, open_store(where) as second:
        assert first.lease.try_acquire("one", ttl_seconds=30)
        first.close()
        assert second.lease.try_acquire("two", ttl_seconds=30) is not None


@pytest.mark.parametrize("ttl_seconds", [0, -1, float("nan"), float("inf")])
def test_a_time_to_live_is_a_positive_number_of_seconds(hall: Hall, ttl_seconds: float) -> None:
    with pytest.raises(StoreRefusedError, match="more than 0 s"):
        hall.lease_from("here").try_acquire("one", ttl_seconds=ttl_seconds)


FIGHTER = """
import os, sys, time
from wattline.store import Entry, open_store

where, mark, name = sys.argv[1:]
store = open_store(where)
give_up_at = time.monotonic() + 100
wins = 0
while wins < 8:
    assert time.monotonic() < give_up_at, "never got the lease"
    token = store.lease.try_acquire(name, ttl_seconds=30)
    if token is None:
        time.sleep(0.001)
        continue
    wins += 1
    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))  # fails if anybody else believes to be in charge
    for _ in range(2):
        store.journal.append([Entry(at=1, kind="k", project="p", actor=name, schema=1,
                                    payload=b"%d" % token.epoch)])
    os.unlink(mark)
    store.lease.release(token)
store.close()
"""


def test_processes_that_fight_for_the_lease_never_hold_it_together(fresh: str, tmp_path: Path) -> None:
    names, mark = ["ada", "ben"], str(tmp_path / "in-charge")
    fighters = [subprocess.Popen([sys.executable, "-c", FIGHTER, fresh, mark, name]) for name in names]
    assert [fighter.wait(timeout=120) for fighter in fighters] == [0, 0]
    with open_store(fresh) as store:
        assert store.journal.verify() == 2 * 8 * 2
        turns = [(json.loads(record.payload), record.actor) for record in store.journal.read()]
    assert [epoch for epoch, _ in turns] == sorted(epoch for epoch, _ in turns)
    assert len(set(turns)) == 2 * 8, "an epoch belongs to one holder"


def test_a_process_that_could_not_let_go_takes_up_its_own_lease_again_and_nobody_elses(hall: Hall) -> None:
    """Its database was away as it let go, or as it was told that it had acquired it."""
    lost = hall.lease_from("here").try_acquire("one", ttl_seconds=10)
    assert lost is not None
    anew = hall.lease_from("here")
    assert hall.lease_from("elsewhere").try_acquire("two", ttl_seconds=10, own_is_over=True) is None
    token = anew.try_acquire("one", ttl_seconds=10, own_is_over=True)
    assert token is not None
    assert token.epoch == lost.epoch + 1
    with pytest.raises(LeaseLostError):
        anew.renew(lost)
