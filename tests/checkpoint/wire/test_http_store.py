"""A receiver on this machine and the store that speaks to it, and servers that misbehave."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np
import pytest
from blake3 import blake3

from wattline.checkpoint import (
    CheckpointError,
    Copied,
    LocalStore,
    MissingError,
    StorageError,
    copy_checkpoint,
    coverage,
    restore,
    save,
)
from wattline.checkpoint.pacing import Rate
from wattline.checkpoint.receiver import Receiver
from wattline.checkpoint.stores.http import HttpStore
from wattline.errors import UsageError

TOKEN = "a-token-for-tests-only"


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(tmp_path / "far", TOKEN) as running:
        yield running


@pytest.fixture
def store(receiver: Receiver) -> HttpStore:
    return HttpStore(receiver.url, TOKEN, patience_seconds=20.0)


def a_checkpoint(root: Path, size_bytes: int = 300_000) -> LocalStore:
    numbers = np.random.default_rng(7).integers(0, 256, size_bytes, dtype=np.uint8)
    save(LocalStore(root), {"weights": numbers}, step=3, epoch=1)
    return LocalStore(root)


def arrive_all(store: HttpStore, name: str, data: bytes) -> None:
    arriving = store.arrive(name, len(data), blake3(data).hexdigest())
    for number in arriving.missing:
        start = number * arriving.part_bytes
        arriving.put(number, memoryview(data)[start : start + arriving.part_bytes])
    arriving.finish()


def write_object(store: HttpStore, name: str, data: bytes) -> None:
    with store.create(name) as writing:
        writing.write(memoryview(data))
        writing.finish()


def test_a_checkpoint_arrives_and_can_be_restored_from_afar(tmp_path: Path, store: HttpStore) -> None:
    here = a_checkpoint(tmp_path / "here")
    copied = copy_checkpoint(here, store)
    assert isinstance(copied, Copied)
    assert copied.sent_bytes == copied.size_bytes == 300_000
    assert coverage(here, store).is_full
    there, original = restore(store), restore(here)
    assert there is not None
    assert original is not None
    assert np.array_equal(there.tree["weights"], original.tree["weights"])


def test_objects_are_put_listed_read_in_ranges_and_deleted(store: HttpStore) -> None:
    data = os.urandom(2**20 + 17)
    assert store.put("packs/a", data, replace=True)
    assert store.read("packs/a") == data
    assert store.read("packs/a", 2**20 - 3, 10) == data[2**20 - 3 : 2**20 + 7]
    assert store.read("packs/a", 2**20 + 10, 100) == data[2**20 + 10 :]
    assert store.read("packs/a", 0, 0) == store.read("packs/a", 2**30) == b""
    assert store.put("packs/b", b"", replace=True)
    assert [(stored.name, stored.size_bytes) for stored in store.list("packs/")] == [
        ("packs/a", len(data)),
        ("packs/b", 0),
    ]
    assert [stored.name for stored in store.list("packs/b")] == ["packs/b"]
    store.delete("packs/a")
    store.delete("packs/a")
    with pytest.raises(MissingError, match="no such object"):
        store.read("packs/a")


def test_of_many_that_put_the_same_name_one_is_told_so(store: HttpStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda number: store.put("claim", b"%d" % number, replace=False), range(8)))
    assert sorted(told) == [False] * 7 + [True]
    assert store.read("claim") == b"%d" % told.index(True)
    assert store.put("claim", b"mine", replace=True)
    assert store.read("claim") == b"mine"


def test_a_writing_is_seen_when_it_is_finished_and_never_before(tmp_path: Path, store: HttpStore) -> None:
    data = os.urandom(700_000)
    with store.create("packs/a") as writing:
        writing.write(memoryview(data)[:400_000])
        assert store.list() == []
        writing.write(memoryview(data)[400_000:])
        writing.finish()
    assert store.read("packs/a") == data
    with store.create("packs/b") as writing:
        writing.write(memoryview(data))
    with pytest.raises(BufferError), store.create("packs/c") as writing:  # noqa: PT012 - inside is the point
        writing.write(memoryview(data))
        raise BufferError
    wait_until(lambda: not list((tmp_path / "far" / ".writing").iterdir()))
    assert [stored.name for stored in store.list()] == ["packs/a"]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_arrived_is_found_again_by_another_sender_and_another_receiver(tmp_path: Path) -> None:
    data = os.urandom(200_000)
    digest = blake3(data).hexdigest()
    with Receiver(tmp_path / "far", TOKEN) as receiver:
        first = HttpStore(receiver.url, TOKEN).arrive("packs/a", len(data), digest)
        assert list(first.missing) == list(range(13))
        for number in (0, 1, 5):
            first.put(number, memoryview(data)[number * 16384 :][:16384])
        assert 5 not in first.missing
    with Receiver(tmp_path / "far", TOKEN) as receiver:
        store = HttpStore(receiver.url, TOKEN)
        again = store.arrive("packs/a", len(data), digest)
        assert list(again.missing) == [2, 3, 4, 6, 7, 8, 9, 10, 11, 12]
        with pytest.raises(StorageError, match="10 parts have not arrived"):
            again.finish()
        arrive_all(store, "packs/a", data)
        assert store.read("packs/a") == data
        again.finish()  # an answer that was lost: asked again, it is the same
        assert store.arrive("packs/a", len(data), digest).missing == []
        assert not list((tmp_path / "far" / ".arriving").iterdir())


SENDER = """
import sys
from pathlib import Path
from typing import Self
from wattline.checkpoint import LocalStore, copy_checkpoint
from wattline.checkpoint.pacing import Rate
from wattline.checkpoint.stores.http import HttpStore
url, token, root = sys.argv[1:]
store = HttpStore(url, token, rate=Rate(400_000))
copy_checkpoint(LocalStore(Path(root)), store, progress=lambda arrived, whole: print(arrived, flush=True))
"""


def test_after_the_sender_is_killed_only_the_rest_is_sent(
    tmp_path: Path, receiver: Receiver, store: HttpStore
) -> None:
    here = a_checkpoint(tmp_path / "here", 2_000_000)
    sender = subprocess.Popen(
        [sys.executable, "-c", SENDER, receiver.url, TOKEN, str(tmp_path / "here")], stdout=subprocess.PIPE
    )
    assert sender.stdout is not None
    with sender, sender.stdout:
        while int(sender.stdout.readline()) < 1_000_000:
            pass
        sender.send_signal(signal.SIGKILL)
    assert store.list() == []
    copied = copy_checkpoint(here, store)
    assert copied is not None
    assert 0 < copied.sent_bytes <= 1_000_000
    assert coverage(here, store).is_full


def test_two_senders_of_the_same_pack_both_succeed(tmp_path: Path, receiver: Receiver) -> None:
    here = a_checkpoint(tmp_path / "here", 1_500_000)
    stores = [HttpStore(receiver.url, TOKEN, streams=4) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        copies = list(pool.map(lambda store: copy_checkpoint(here, store), stores))
    assert all(copies)
    assert coverage(here, stores[0]).is_full
    assert restore(LocalStore(tmp_path / "far")) is not None


def test_a_part_that_comes_too_late_changes_nothing(tmp_path: Path, store: HttpStore) -> None:
    data = os.urandom(40_000)
    late = store.arrive("packs/a", len(data), blake3(data).hexdigest())
    arrive_all(store, "packs/a", data)
    late.put(1, memoryview(bytes(16384)))
    late.finish()
    assert LocalStore(tmp_path / "far").read("packs/a") == data


def test_what_arrived_differently_is_not_kept(tmp_path: Path, store: HttpStore) -> None:
    arriving = store.arrive("packs/a", 20_000, "0" * 64)
    arriving.put(0, memoryview(bytes(16384)))
    arriving.put(1, memoryview(bytes(3616)))
    with pytest.raises(CheckpointError, match="not what was sent") as caught:
        arriving.finish()
    assert not isinstance(caught.value, StorageError)
    assert not list((tmp_path / "far" / ".arriving").iterdir())
    with pytest.raises(StorageError, match="not arriving any more"):
        arriving.put(0, memoryview(bytes(16384)))
    assert store.list() == []


@pytest.mark.parametrize(("number", "size_bytes"), [(0, 16383), (1, 16384), (2, 16384), (2**40, 3616)])
def test_a_part_has_its_own_number_and_size(store: HttpStore, number: int, size_bytes: int) -> None:
    arriving = store.arrive("packs/a", 20_000, "0" * 64)
    with pytest.raises(CheckpointError, match="bytes"):
        arriving.put(number, memoryview(bytes(size_bytes)))


def test_leftovers_of_arrivals_are_swept(tmp_path: Path, store: HttpStore) -> None:
    store.arrive("packs/a", 20_000, "0" * 64)
    assert store.sweep(3600) == 0
    for path in (tmp_path / "far" / ".arriving").iterdir():
        os.utime(path, (0, 0))
    assert store.sweep(3600) >= 20_000
    assert not list((tmp_path / "far" / ".arriving").iterdir())


def test_a_wrong_token_is_told_so_at_once(receiver: Receiver) -> None:
    stranger = HttpStore(receiver.url, "another-token-altogether")
    began = time.monotonic()
    with pytest.raises(CheckpointError, match="token is not the right one"):
        stranger.list()
    with pytest.raises(CheckpointError, match="token is not the right one"):
        stranger.put("packs/a", bytes(2**20), replace=True)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("ftp://host", TOKEN),
        ("http://", TOKEN),
        ("http://user:secret@host", TOKEN),
        ("http://host:port", TOKEN),
        ("http://host", "short"),
        ("http://host", "a token with blanks in it"),
        ("http://host", "a-token-with\r\nX-Header: inside"),
    ],
)
def test_a_url_or_token_that_cannot_be_is_refused(url: str, token: str) -> None:
    with pytest.raises(UsageError) as caught:
        HttpStore(url, token)
    assert "secret" not in str(caught.value)


def test_the_rate_is_held(store: HttpStore, receiver: Receiver) -> None:
    data = os.urandom(450_000)
    paced = HttpStore(receiver.url, TOKEN, rate=Rate(300_000))
    arriving = paced.arrive("packs/a", len(data), blake3(data).hexdigest())
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        parts = [memoryview(data)[number * 16384 :][:16384] for number in arriving.missing]
        list(pool.map(arriving.put, arriving.missing, parts))
    arriving.finish()
    assert time.monotonic() - began >= 1.3
    assert store.read("packs/a") == data


class Misbehaving:
    """A server that does something to each connection before it hands it on to a receiver, or does not."""

    def __init__(self, target: str, *manners: str) -> None:
        self._manners, self._target = list(manners), target.rpartition(":")[2]
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._socket, *self._open):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(client)
            manner = self._manners.pop(0) if len(self._manners) > 1 else self._manners[0]
            threading.Thread(target=self._treat, args=(client, manner), daemon=True).start()

    def _treat(self, client: socket.socket, manner: str) -> None:
        if manner == "stall":
            return
        if manner == "close":
            client.close()
        elif manner in {"pass", "deaf"}:
            server = socket.create_connection(("127.0.0.1", int(self._target)))
            self._open.append(server)
            if manner == "pass":
                threading.Thread(target=pump, args=(server, client), daemon=True).start()
            pump(client, server)
        else:
            with suppress(OSError):  # another connection was quicker
                client.recv(65536)
                client.sendall(manner.encode())
            client.close()


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


BUSY = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"
HALF = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
NONE = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
UNTIL_CLOSED = "HTTP/1.1 200 OK\r\n\r\nsomething"
NOISE = "SSH-2.0-OpenSSH_9.2\r\n"


@pytest.mark.parametrize("manner", [BUSY, HALF, NONE, UNTIL_CLOSED, NOISE, "close", "stall"])
def test_what_may_pass_is_tried_again(receiver: Receiver, store: HttpStore, manner: str) -> None:
    store.put("packs/a", b"content", replace=True)
    with Misbehaving(receiver.url, manner, manner, "pass") as server:
        through = HttpStore(server.url, TOKEN, silence_seconds=0.5, patience_seconds=30)
        assert through.read("packs/a") == b"content"
        assert server.connections == 3


@pytest.mark.parametrize(("manner", "why"), [(BUSY, "503 busy"), ("close", ""), ("stall", "timed out")])
def test_what_does_not_pass_is_a_storage_error_in_the_end(receiver: Receiver, manner: str, why: str) -> None:
    with Misbehaving(receiver.url, manner) as server:
        through = HttpStore(server.url, TOKEN, silence_seconds=0.2, patience_seconds=0.5)
        with pytest.raises(StorageError, match=f"did not go through in 0.5 s: .*{why}"):
            through.put("packs/a", bytes(2**20), replace=True)
        with pytest.raises(StorageError):
            write_object(through, "packs/b", bytes(2**22))


def test_an_unreachable_receiver_is_a_storage_error_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(StorageError, match="refused"):
        HttpStore(url, TOKEN, patience_seconds=0.3).list()


@pytest.mark.parametrize(
    "answer",
    [
        {"key": "k", "part_bytes": 0, "missing": []},
        {"key": "k", "part_bytes": 2**40, "missing": []},
        {"key": "k", "part_bytes": 16384, "missing": [[0, 3]]},
        {"key": "k", "part_bytes": 16384, "missing": [[-1, 1]]},
        {"key": "k", "part_bytes": 1, "missing": [[0, 10**12]]},
        {"key": "k", "part_bytes": 16384, "missing": [[0]]},
        {"part_bytes": 16384, "missing": []},
        ["nothing"],
    ],
)
def test_an_answer_that_cannot_be_is_not_believed(receiver: Receiver, answer: object) -> None:
    body = json.dumps(answer)
    reply = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    with Misbehaving(receiver.url, reply) as server, pytest.raises(CheckpointError, match="missing"):
        HttpStore(server.url, TOKEN).arrive("packs/a", 20_000, "0" * 64)


def test_a_put_whose_answer_is_lost_is_not_taken_for_somebody_elses(receiver: Receiver) -> None:
    with Misbehaving(receiver.url, "deaf", "pass") as server:
        store = HttpStore(server.url, TOKEN, silence_seconds=1.0, patience_seconds=30)
        assert store.put("claim", b"mine", replace=False)
        assert server.connections == 2
        assert not store.put("claim", b"mine", replace=False)


def test_a_question_whose_answer_is_late_is_put_again_and_the_first_answer_counts(receiver: Receiver) -> None:
    with Misbehaving(receiver.url, "deaf", "pass") as server:
        store = HttpStore(server.url, TOKEN, silence_seconds=60.0, patience_seconds=60.0)
        began = time.monotonic()
        assert store.list() == []
        assert time.monotonic() - began < 30
        assert server.connections == 2


def test_what_would_do_harm_if_it_came_twice_is_not_put_again_while_the_first_may_come(
    receiver: Receiver,
) -> None:
    with Misbehaving(receiver.url, "deaf", "pass") as server:
        store = HttpStore(server.url, TOKEN, silence_seconds=1.5, patience_seconds=60.0)
        began = time.monotonic()
        store.delete("packs/a")
        assert time.monotonic() - began >= 1.5


def test_a_put_that_comes_a_second_time_does_not_replace_what_came_between(receiver: Receiver) -> None:
    head = f"PUT /v1/objects/fence HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nIdempotency-Key: one\r\n"
    head += f"Content-Length: 3\r\nContent-BLAKE3: {blake3(b'old').hexdigest()[:32]}\r\n\r\n"
    store = HttpStore(receiver.url, TOKEN)
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", int(receiver.url.rpartition(":")[2]))) as late:
            late.sendall(head.encode() + b"old")
            assert late.recv(100).startswith(b"HTTP/1.1 204 ")
        store.put("fence", b"new", replace=True)
    assert store.read("fence") == b"new"


def test_the_last_part_does_not_wait_for_a_connection_that_fell_silent(receiver: Receiver) -> None:
    data = os.urandom(10_000)
    with Misbehaving(receiver.url, "pass", "deaf", "pass") as server:
        store = HttpStore(server.url, TOKEN, streams=3, silence_seconds=60.0, patience_seconds=60.0)
        began = time.monotonic()
        arrive_all(store, "packs/a", data)
        assert time.monotonic() - began < 30
    assert HttpStore(receiver.url, TOKEN).read("packs/a") == data
