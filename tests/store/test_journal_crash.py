"""What is left when a writer is killed in the middle of its work?"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from sqlalchemy import select

from wattline.store import open_store
from wattline.store.schema import writer_lease

BATCH = 7
WRITER = f"""
import itertools, json, os, sys
from wattline.store import Entry, open_store

store = open_store(sys.argv[1])
assert store.lease.try_acquire("writer", ttl_seconds=3600), "the dead writer's lease was not free"
for batch in itertools.count():
    entries = [
        Entry(at=float(batch), kind="k", project="p", actor=str(os.getpid()), schema=1,
              payload=json.dumps([batch, index]).encode() + b" " * 3000)
        for index in range({BATCH})
    ]
    print(store.journal.append(entries), flush=True)
"""


def start_writer(where: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITER, where], stdout=subprocess.PIPE, text=True)


def test_a_killed_writer_leaves_whole_batches_and_all_it_acknowledged(where: str) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for _ in range(10):
        writer = start_writer(where)
        assert writer.stdout is not None
        with writer:
            acknowledged = int(writer.stdout.readline())
            time.sleep(chance.uniform(0, 0.06))
            writer.kill()
            acknowledged = max([acknowledged, *(int(line) for line in writer.stdout if line.endswith("\n"))])
        with open_store(where) as store:
            kept = store.journal.verify()
            assert kept >= acknowledged, f"seed {seed}"
            assert kept - acknowledged in (0, BATCH), f"seed {seed}"
            indexes = [json.loads(record.payload)[1] for record in store.journal.read()]
            assert indexes == [*range(BATCH)] * (kept // BATCH), f"seed {seed}"


def test_the_lease_of_a_killed_writer_is_free_before_it_is_even_reaped(where: str) -> None:
    writer = start_writer(where)
    assert writer.stdout is not None
    with writer, open_store(where) as store:
        writer.stdout.readline()
        assert store.lease.try_acquire("next", ttl_seconds=3600) is None
        os.kill(writer.pid, signal.SIGKILL)
        os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)  # dead, and still a zombie
        token = store.lease.try_acquire("next", ttl_seconds=3600)
        assert token is not None
        assert token.epoch == 2


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs job control")
def test_a_stopped_writer_keeps_its_lease_until_it_dies(where: str) -> None:
    script = WRITER.replace("ttl_seconds=3600", "ttl_seconds=0.01")
    with subprocess.Popen([sys.executable, "-c", script, where], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        # Stopped inside a transaction it would keep the database's own locks too, and this test would wait.
        with open_store(where) as store, store._database.writing() as connection:
            connection.execute(select(writer_lease).with_for_update())
            writer.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
        with open_store(where) as store:
            info = store.lease.current()
            assert info is not None
            assert info.process.pid == writer.pid
            assert info.expires_at < time.time()
            assert store.lease.try_acquire("impatient", ttl_seconds=30) is None
            writer.kill()
            os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)
            assert store.lease.try_acquire("patient", ttl_seconds=30) is not None
