"""How many appends and submissions a second does a store make durable?

    python -m bench.stores [--seconds 5]

On SQLite and on a PostgreSQL of its own, both on the same disk and both with fsync. *append* is one record of
1.5 kB by the one writer; *put* is one message of 1 kB, each in a commit of its own; *put, gathered* is what a
server does: whatever clients hand in while the disk is busy goes into the next commit. Clients are threads,
each waits for its answer before it asks again. The yardstick is a plain 4 kB write with fdatasync, one at a
time.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np

from wattline.store import Entry, Message, Store, open_store

ENTRY = Entry(at=1.0, kind="step", project="nlp", actor="loop", schema=1, payload=b"x" * 1500)
PAYLOAD = b"x" * 1000
CLIENTS = (1, 8)
_TESTS = Path(__file__).parents[1] / "tests"


class Gatherer:
    """Takes whatever is waiting into one commit; the next ones gather while the disk is busy."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: queue.SimpleQueue[tuple[Message, threading.Event] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def put(self, message: Message) -> None:
        done = threading.Event()
        self._waiting.put((message, done))
        done.wait()

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first]
            while not self._waiting.empty() and (more := self._waiting.get()) is not None:
                batch.append(more)
            self._store.inbox.put_many([message for message, _ in batch])
            for _, done in batch:
                done.set()


def measure(call: Callable[[], object], clients: int, seconds: float) -> str:
    """Calls a second, and how long one takes."""
    latencies: list[float] = []
    begun = time.perf_counter()

    def ask() -> None:
        while time.perf_counter() - begun < seconds:
            asked = time.perf_counter()
            call()
            latencies.append(time.perf_counter() - asked)

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    p50, p99 = np.percentile(latencies, [50, 99]) * 1000
    return f"{len(latencies) / took:,.0f} | {p50:.1f} | {p99:.1f} |"


def measure_store(name: str, store: Store, seconds: float) -> None:
    assert store.lease.try_acquire("bench", ttl_seconds=3600)
    numbers = count()
    gatherer = Gatherer(store)

    def next_message() -> Message:
        return Message(f"{name}-{next(numbers)}", "submit", PAYLOAD)

    def put() -> None:
        message = next_message()
        store.inbox.put(message.id, message.kind, message.payload)

    ways: dict[str, Callable[[], object]] = {
        "append": lambda: store.journal.append([ENTRY]),
        "put": put,
        "put, gathered": lambda: gatherer.put(next_message()),
    }
    try:
        for way, call in ways.items():
            for clients in CLIENTS:
                print(f"| {way} | {name} | {clients} | {measure(call, clients, seconds)}", flush=True)
    finally:
        gatherer.close()


def yardstick(folder: Path, seconds: float) -> None:
    handle = os.open(folder / "yard", os.O_CREAT | os.O_WRONLY)

    def write() -> None:
        os.pwrite(handle, bytes(4096), 0)
        os.fdatasync(handle)

    print(f"| 4 kB and fdatasync | a file | 1 | {measure(write, 1, seconds)}", flush=True)
    os.close(handle)


@contextmanager
def stores(folder: Path) -> Iterator[dict[str, Store]]:
    with open_store(folder) as sqlite:
        if shutil.which("initdb", path=f"{os.environ['PATH']}:/usr/lib/postgresql/15/bin") is None:
            print("PostgreSQL is left out: initdb is not here (ci/install-engines)", file=sys.stderr)
            yield {"SQLite": sqlite}
            return
        sys.path.append(str(_TESTS))
        from postgres import PostgresServer

        with PostgresServer() as server, open_store(server.url(server.new_database())) as postgresql:
            yield {"SQLite": sqlite, "PostgreSQL": postgresql}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each row is measured")
    seconds = parser.parse_args().seconds
    print("| what | where | clients | per second | p50 ms | p99 ms |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="wattline-stores-") as name:
        folder = Path(name)
        with stores(folder) as opened:
            yardstick(folder, seconds)
            for kind, store in opened.items():
                measure_store(kind, store, seconds)
            yardstick(folder, seconds)
            for store in opened.values():
                store.journal.verify()


if __name__ == "__main__":
    main()
