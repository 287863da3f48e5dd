"""What a receiver lets strangers, slow senders and broken ones do: nothing that lasts."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wattline.checkpoint import CheckpointError, LocalStore, StorageError
from wattline.checkpoint.receiver import Limits, Receiver, part_bytes
from wattline.checkpoint.stores.http import HttpStore
from wattline.errors import UsageError

TOKEN = "a-token-for-tests-only"
BEARER = f"Authorization: Bearer {TOKEN}\r\n"


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    limits = Limits(
        connections=3,
        object_bytes=2**42,
        put_bytes=100_000,
        head_seconds=0.5,
        idle_seconds=1.0,
        head_bytes=4096,
    )
    with Receiver(tmp_path / "far", TOKEN, limits=limits) as running:
        yield running


def connect(receiver: Receiver) -> socket.socket:
    port = int(receiver.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def say(receiver: Receiver, text: str | bytes) -> str:
    """All that comes back until the receiver hangs up."""
    with connect(receiver) as sock:
        sock.sendall(text.encode() if isinstance(text, str) else text)
        return hear(sock)


def hear(sock: socket.socket) -> str:
    heard = b""
    try:
        while data := sock.recv(65536):
            heard += data
    except ConnectionResetError:
        pass
    return heard.decode()


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "request_text",
    [
        "GET /v1/objects HTTP/1.1\r\n\r\n",
        "GET /v1/objects HTTP/1.1\r\nAuthorization: Bearer\r\n\r\n",
        f"GET /v1/objects HTTP/1.1\r\nAuthorization: Bearer {TOKEN}x\r\n\r\n",
        f"GET /v1/objects HTTP/1.1\r\nAuthorization: Basic {TOKEN}\r\n\r\n",
        "PUT /v1/objects/a HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
    ],
)
def test_without_the_token_there_is_only_401(tmp_path: Path, receiver: Receiver, request_text: str) -> None:
    assert say(receiver, request_text).startswith("HTTP/1.1 401 ")
    assert not files(tmp_path)


@pytest.mark.parametrize(
    "request_text",
    [
        "hello\r\n\r\n",
        f"GET /v1/objects HTTP/1.0\r\n{BEARER}\r\n",
        f"GET  /v1/objects HTTP/1.1\r\n{BEARER}\r\n",
        f"GET /v1/objects HTTP/1.1\r\n{BEARER}{BEARER}\r\n",
        f"GET /v1/objects HTTP/1.1\r\n{BEARER} folded: line\r\n\r\n",
        f"GET /v1/objects HTTP/1.1\r\n{BEARER}Name : blank\r\n\r\n",
        f"PUT /v1/objects/a HTTP/1.1\r\n{BEARER}Content-Length: -1\r\n\r\n",
        f"PUT /v1/objects/a HTTP/1.1\r\n{BEARER}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        f"PUT /v1/objects/a HTTP/1.1\r\n{BEARER}Transfer-Encoding: gzip\r\n\r\n",
        f"PUT /v1/objects/a HTTP/1.1\r\n{BEARER}Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        f"PUT /v1/objects/a HTTP/1.1\r\n{BEARER}Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
        f"PUT /v1/objects/%2e%2e/a HTTP/1.1\r\n{BEARER}Content-Length: 0\r\n\r\n",
        f"PUT /v1/objects/../a HTTP/1.1\r\n{BEARER}Content-Length: 0\r\n\r\n",
        f"PUT /v1/objects//etc/a HTTP/1.1\r\n{BEARER}Content-Length: 0\r\n\r\n",
        f"PUT /v1/objects/.arriving/a HTTP/1.1\r\n{BEARER}Content-Length: 0\r\n\r\n",
        f"GET /v1/objects/a?start=x&length=1 HTTP/1.1\r\n{BEARER}\r\n",
        f"GET /v1/objects/a?start=0&length=9999999 HTTP/1.1\r\n{BEARER}\r\n",
        f"POST /v1/arriving/a?size=99999999999999999&blake3={'0' * 64} HTTP/1.1\r\n{BEARER}\r\n",
        f"GET /v2/objects HTTP/1.1\r\n{BEARER}\r\n",
    ],
)
def test_what_is_doubtful_is_refused(tmp_path: Path, receiver: Receiver, request_text: str) -> None:
    assert say(receiver, request_text).startswith("HTTP/1.1 400 ")
    assert not files(tmp_path)


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /v1/objects?prefix=../",
        "GET /v1/objects?prefix=%2Fetc%2F",
        "GET /v1/objects?prefix=.arriving/",
        "POST /v1/arriving/a?size=1&blake3=abc",
    ],
)
def test_what_no_store_takes_is_not_taken_from_afar(receiver: Receiver, request_line: str) -> None:
    assert say(receiver, f"{request_line} HTTP/1.1\r\n{BEARER}\r\n").startswith("HTTP/1.1 422 ")


@pytest.mark.parametrize("request_line", ["DELETE /v1/objects", "PUT /v1/sweep", "BREW /v1/objects/a"])
def test_a_method_is_only_for_what_it_is_for(receiver: Receiver, request_line: str) -> None:
    assert say(receiver, f"{request_line} HTTP/1.1\r\n{BEARER}\r\n").startswith("HTTP/1.1 405 ")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(min_size=1, max_size=300))
def test_noise_neither_stops_it_nor_gets_a_yes(receiver: Receiver, noise: bytes) -> None:
    assert not say(receiver, noise + b"\r\n\r\n").startswith("HTTP/1.1 2")


def test_a_connection_serves_one_request_after_the_other(receiver: Receiver) -> None:
    request = f"GET /v1/objects HTTP/1.1\r\n{BEARER}\r\n"
    heard = say(receiver, request * 3)
    assert heard.count("HTTP/1.1 200 OK") == 3
    assert "Connection: close" not in heard


@pytest.mark.parametrize(
    "begun", ["", "GET /v1/obj", f"PUT /v1/objects/a HTTP/1.1\r\n{BEARER}Content-Length: 9\r\n\r\nab"]
)
def test_who_says_nothing_more_is_let_go(tmp_path: Path, receiver: Receiver, begun: str) -> None:
    assert say(receiver, begun) == ""
    assert not files(tmp_path)


def test_who_says_a_header_letter_by_letter_is_let_go(receiver: Receiver) -> None:
    with connect(receiver) as sock:
        deadline = time.monotonic() + 20
        try:
            while time.monotonic() < deadline:
                sock.sendall(b"a")
                time.sleep(0.05)
        except OSError:
            return
    pytest.fail("it listened for ever")


def test_headers_have_an_end(receiver: Receiver) -> None:
    assert say(receiver, "GET / HTTP/1.1\r\n" + "A: b\r\n" * 10_000) == ""


def test_one_connection_too_many_is_told_to_come_later(receiver: Receiver) -> None:
    held = [connect(receiver) for _ in range(3)]
    try:
        for sock in held:
            sock.sendall(f"GET /v1/objects HTTP/1.1\r\n{BEARER}\r\n".encode())
            assert sock.recv(100).startswith(b"HTTP/1.1 200")
        assert say(receiver, "").startswith("HTTP/1.1 503 ")
    finally:
        for sock in held:
            sock.close()


def test_nothing_may_be_larger_than_the_limits_say(tmp_path: Path) -> None:
    limits = Limits(put_bytes=1000, object_bytes=2000)
    with Receiver(tmp_path / "far", TOKEN, limits=limits) as receiver:
        store = HttpStore(receiver.url, TOKEN)
        assert store.put("a", bytes(1000), replace=True)
        with pytest.raises(CheckpointError, match="1001 bytes, at most 1000"):
            store.put("a", bytes(1001), replace=True)
        with pytest.raises(CheckpointError, match="up to 2000"):
            store.arrive("a", 2001, "0" * 64)
        with pytest.raises(CheckpointError, match="at most 2000"):
            write_object(store, "b", bytes(500_000))
        assert [(stored.name, stored.size_bytes) for stored in store.list()] == [("a", 1000)]


def write_object(store: HttpStore, name: str, data: bytes) -> None:
    with store.create(name) as writing:
        writing.write(memoryview(data))
        writing.finish()


def test_what_there_is_no_room_for_is_not_begun(receiver: Receiver, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no room"):
        HttpStore(receiver.url, TOKEN).arrive("packs/a", 2**42, "0" * 64)
    assert not files(tmp_path)


def test_a_body_that_was_altered_on_its_way_is_asked_for_again(tmp_path: Path, receiver: Receiver) -> None:
    digest = blake3(b"right").hexdigest()[:32]
    request = f"PUT /v1/objects/a HTTP/1.1\r\n{BEARER}Content-Length: 5\r\nContent-BLAKE3: {digest}\r\n\r\n"
    assert say(receiver, request + "wrong").startswith("HTTP/1.1 503 ")
    assert not files(tmp_path)
    assert say(receiver, request + "right").startswith("HTTP/1.1 204 ")
    assert LocalStore(tmp_path / "far").read("a") == b"right"


@pytest.mark.parametrize(
    ("key", "status"), [("no-key", 422), ("0" * 32, 422), (f"{'0' * 32}-0", 422), (f"{'0' * 32}-16384", 404)]
)
def test_a_part_of_nothing_that_arrives_is_not_kept(
    tmp_path: Path, receiver: Receiver, key: str, status: int
) -> None:
    digest = blake3(b"part").hexdigest()[:32]
    head = (
        f"PUT /v1/parts/{key}?n=0 HTTP/1.1\r\n{BEARER}Content-Length: 4\r\nContent-BLAKE3: {digest}\r\n\r\n"
    )
    assert say(receiver, head + "part").startswith(f"HTTP/1.1 {status} ")
    assert not files(tmp_path)


def test_a_map_that_a_crash_left_behind_is_not_believed(tmp_path: Path, receiver: Receiver) -> None:
    """It died between letting the object be seen and forgetting its parts; later the object was pruned."""
    data = os.urandom(40_000)
    store = HttpStore(receiver.url, TOKEN)
    arriving = store.arrive("packs/a", len(data), blake3(data).hexdigest())
    (parts,) = (tmp_path / "far" / ".arriving").glob("*.map")
    parts.with_suffix("").unlink()
    parts.write_bytes(b"\1" * 3)
    arriving = store.arrive("packs/a", len(data), blake3(data).hexdigest())
    assert list(arriving.missing) == [0, 1, 2]


def test_an_object_that_is_there_but_damaged_is_received_again(tmp_path: Path, receiver: Receiver) -> None:
    data = os.urandom(20_000)
    store = HttpStore(receiver.url, TOKEN)
    store.put("packs/a", bytes(20_000), replace=True)
    arriving = store.arrive("packs/a", len(data), blake3(data).hexdigest())
    for number in arriving.missing:
        arriving.put(number, memoryview(data)[number * 16384 :][:16384])
    arriving.finish()
    assert store.read("packs/a") == data


def test_an_empty_object_arrives_too(receiver: Receiver) -> None:
    store = HttpStore(receiver.url, TOKEN)
    arriving = store.arrive("packs/a", 0, blake3(b"").hexdigest())
    assert arriving.missing == []
    arriving.finish()
    assert store.read("packs/a") == b""


@pytest.mark.parametrize("size_bytes", [0, 1, 2**14, 24_000_000, 2**30, 2**34, 2**42])
def test_parts_are_small_where_that_matters_and_few_where_it_does_not(size_bytes: int) -> None:
    part = part_bytes(size_bytes)
    assert 2**14 <= part <= 2**20
    assert part & (part - 1) == 0
    if size_bytes >= 2**25:
        assert 32 * part <= size_bytes * 0.04
    assert part_bytes(24_000_000) == 2**14


def test_it_stops_although_somebody_is_still_connected(tmp_path: Path) -> None:
    with Receiver(tmp_path / "far", TOKEN) as receiver:
        sock = connect(receiver)
        sock.sendall(b"GET /v1/obj")
    with sock:
        assert hear(sock) == ""


def test_a_short_token_or_a_port_that_is_taken_is_refused(tmp_path: Path, receiver: Receiver) -> None:
    with pytest.raises(UsageError, match="too short"):
        Receiver(tmp_path, "short")
    port = int(receiver.url.rpartition(":")[2])
    with pytest.raises(UsageError, match="cannot be listened on"), Receiver(tmp_path, TOKEN, port=port):
        pass


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_with_a_certificate_it_speaks_tls(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate, key)
    with Receiver(tmp_path / "far", TOKEN, tls=serving) as receiver:
        assert receiver.url.startswith("https://")
        store = HttpStore(receiver.url, TOKEN, tls=ssl.create_default_context(cafile=str(certificate)))
        data = os.urandom(300_000)
        assert store.put("a", data, replace=True)
        write_object(store, "b", data)
        assert store.read("a") == store.read("b") == data
        with pytest.raises(StorageError, match=r"(?i)certificate"):
            HttpStore(receiver.url, TOKEN, patience_seconds=0.2).list()
