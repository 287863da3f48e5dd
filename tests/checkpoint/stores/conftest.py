"""A real S3 service on a free port, once for all tests, and a way to stand between it and its client."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from wattline.checkpoint.receiver import Receiver
from wattline.checkpoint.stores import LocalStore, Store
from wattline.checkpoint.stores.http import HttpStore
from wattline.checkpoint.stores.s3 import S3Store

SMALLEST_PART_BYTES = 5 * 2**20
_BUCKET = "checkpoints"
_HOP_BY_HOP = frozenset({"connection", "transfer-encoding", "content-length", "date", "server"})

OpenStore = Callable[[], Store]
"""A new object for the same store, as another process would have it."""

_TOKEN = "a-token-that-is-long-enough"


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    one_at_a_time, put_object = threading.Lock(), S3Response.put_object

    def put_alone(self: S3Response) -> Any:
        with one_at_a_time:
            return put_object(self)

    with pytest.MonkeyPatch.context() as patch:
        # S3 decides a conditional put in one step; the emulation looks first and puts later.
        patch.setattr(S3Response, "put_object", put_alone)
        for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ACCESS_KEY_ID", "anybody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2-is-never-printed")
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        connection = HTTPConnection(host, port, timeout=30)
        connection.request("PUT", f"/{_BUCKET}")
        assert connection.getresponse().status == 200
        connection.close()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def open_s3(s3_endpoint: str) -> Callable[..., S3Store]:
    """By its endpoint, below a prefix that nobody else uses."""
    prefix = f"runs/{secrets.token_hex(8)}"
    return lambda endpoint, **options: _open_s3(endpoint, prefix, **options)


def _open_s3(endpoint: str, prefix: str, **options: Any) -> S3Store:
    options = {"part_bytes": SMALLEST_PART_BYTES, "attempts": 2, "timeout_seconds": 10.0} | options
    return S3Store(_BUCKET, prefix, endpoint=endpoint, region="us-east-1", **options)


def _local(request: pytest.FixtureRequest) -> OpenStore:
    root: Path = request.getfixturevalue("tmp_path")
    return lambda: LocalStore(root / "store")


def _s3(request: pytest.FixtureRequest) -> OpenStore:
    endpoint, prefix = request.getfixturevalue("s3_endpoint"), f"runs/{secrets.token_hex(8)}"
    return lambda: _open_s3(endpoint, prefix)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(tmp_path / "store", _TOKEN) as receiver:
        yield receiver


def _http(request: pytest.FixtureRequest) -> OpenStore:
    receiver: Receiver = request.getfixturevalue("receiver")
    stores: list[HttpStore] = []

    def open_store() -> Store:
        stores.append(HttpStore(receiver.url, _TOKEN, patience_seconds=10.0))
        return stores[-1]

    return open_store


# A store joins the contract with a line here: how a test opens it, as often as it likes.
STORES: dict[str, Callable[[pytest.FixtureRequest], OpenStore]] = {
    "local": _local,
    "s3": _s3,
    "http": _http,
}


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return STORES[request.param](request)


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()


@dataclass
class Fault:
    """What happens to requests that match, the first so many of them; by default they are never answered."""

    method: str
    part_of_url: str = ""
    skip: int = 0
    times: int = 10**6
    status: int | None = None
    code: str = ""
    alter: Callable[[bytes], bytes] | None = None
    drop_header: str = ""
    after: bool = False
    """The service does what it is asked, and only its answer is lost."""
    cut: bool = False
    """The answer breaks off half-way."""


@dataclass
class Middle:
    """Stands before the service and misbehaves as told."""

    endpoint: str
    faults: list[Fault] = field(default_factory=list)
    seen: list[tuple[str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def misbehave(self, method: str, part_of_url: str = "", **how: Any) -> None:
        self.faults.append(Fault(method, part_of_url, **how))

    def behave(self) -> None:
        self.faults.clear()

    def take(self, method: str, url: str) -> Fault | None:
        self.seen.append((method, url))
        for fault in self.faults:
            if fault.times > 0 and fault.method == method and fault.part_of_url in url:
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def count(self, method: str, part_of_url: str = "") -> int:
        return sum(one == method and part_of_url in url for one, url in self.seen)


@pytest.fixture
def middle(s3_endpoint: str) -> Iterator[Middle]:
    behind = urlsplit(s3_endpoint).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fault = told.take(self.command, self.path)
            if fault is None:
                self.pass_on(body, None)
            elif fault.status is not None:
                if fault.after:
                    self.ask(body, fault)
                self.refuse(fault.status, fault.code)
            elif fault.alter or fault.drop_header or fault.cut:
                self.pass_on(body, fault)
            else:
                told.released.wait(60)
                self.close_connection = True

        def ask(self, body: bytes, fault: Fault | None) -> tuple[int, list[tuple[str, str]], bytes]:
            connection = HTTPConnection(behind, timeout=60)
            dropped = fault.drop_header.lower() if fault else ""
            headers = {key: value for key, value in self.headers.items() if key.lower() != dropped}
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            answer = response.read()
            connection.close()
            return response.status, response.getheaders(), answer

        def pass_on(self, body: bytes, fault: Fault | None) -> None:
            status, headers, answer = self.ask(body, fault)
            if fault is not None and fault.alter is not None:
                answer = fault.alter(answer)
            self.send_response(status)
            length = str(len(answer))
            for key, value in headers:
                if key.lower() == "content-length" and self.command == "HEAD":
                    length = value
                elif key.lower() not in _HOP_BY_HOP:
                    self.send_header(key, value)
            self.send_header("Content-Length", length)
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer[: len(answer) // 2] if fault and fault.cut else answer)

        def refuse(self, status: int, code: str) -> None:
            answer = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told = Middle(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield told
    told.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], bool]:
    """Services date what they have to the second."""

    def wait_for(holds: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + 20.0
        while not (held := holds()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return held

    return wait_for
