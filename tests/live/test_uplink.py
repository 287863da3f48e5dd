"""An agent's way to its server: words quickly, files by their hash and at their rate."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from wattline.checkpoint import Rate
from wattline.control.sites import SyncReply, SyncRequest, encode_message
from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.live.uplink import Uplink

CONTENT = b"results" * 40_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
REQUEST = SyncRequest(site="zurich", agent="a", number=5, clock=0.0)


class Server:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.status = 200
        self.body = encode_message(SyncReply(number=5))
        self.tokens: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.tokens.append(self.headers["Authorization"])
                self.rfile.read(int(self.headers["Content-Length"]))
                self.say(outer.status, outer.body)

            def do_GET(self) -> None:
                found = outer.objects.get(self.path.rpartition("/")[2])
                self.say(200 if found is not None else 404, found or b"{}")

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_PUT(self) -> None:
                name = self.path.rpartition("/")[2]
                outer.objects[name] = self.rfile.read(int(self.headers["Content-Length"]))
                self.say(201, b"{}")

            def say(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def test_a_sync_bears_its_token_and_brings_the_answer(server: Server) -> None:
    assert Uplink(server.url, "secret").sync(REQUEST).number == 5
    assert server.tokens == ["Bearer secret"]


@pytest.mark.parametrize(("status", "kind"), [(403, RefusedError), (503, UnavailableError)])
def test_what_the_server_says_is_passed_on_without_the_token(
    server: Server, status: int, kind: type[Exception]
) -> None:
    server.status, server.body = status, json.dumps({"detail": "not you"}).encode()
    with pytest.raises(kind, match="not you") as caught:
        Uplink(server.url, "secret").sync(REQUEST)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("body", [b"rubbish", b"[]", b'{"number": "x"}', b"[" * 100_000])
def test_an_answer_that_cannot_be_is_not_believed(server: Server, body: bytes) -> None:
    server.body = body
    with pytest.raises(UsageError, match="cannot be read"):
        Uplink(server.url).sync(REQUEST)


def test_nobody_there_is_said_in_words() -> None:
    with pytest.raises(UnavailableError, match="refused"):
        Uplink("http://127.0.0.1:9").sync(REQUEST)
    with pytest.raises(UsageError, match="is no address"):
        Uplink("ftp://example")


def test_a_file_goes_there_once_and_comes_back_whole(server: Server, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(CONTENT)
    uplink = Uplink(server.url)
    uplink.push(SHA256, tmp_path / "here")
    server.objects[SHA256] += b""
    uplink.fetch(SHA256, tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == CONTENT


def test_a_file_that_is_not_what_its_name_says_is_not_kept(server: Server, tmp_path: Path) -> None:
    server.objects[SHA256] = CONTENT[:-1] + b"!"
    with pytest.raises(UnavailableError, match="another SHA-256"):
        Uplink(server.url).fetch(SHA256, tmp_path / "there")
    assert list(tmp_path.iterdir()) == []


def test_files_keep_to_their_share_while_words_do_not_wait(server: Server, tmp_path: Path) -> None:
    """280 kB at 140 kB/s take two seconds; a sync in between is answered meanwhile."""
    (tmp_path / "here").write_bytes(CONTENT)
    uplink, rate = Uplink(server.url), Rate(len(CONTENT) / 2.0)
    began = time.monotonic()
    sending = threading.Thread(target=uplink.push, args=(SHA256, tmp_path / "here", rate))
    sending.start()
    assert uplink.sync(REQUEST).number == 5
    synced_seconds = time.monotonic() - began
    sending.join()
    sent_seconds = time.monotonic() - began
    assert server.objects[SHA256] == CONTENT
    assert sent_seconds > 1.0
    assert synced_seconds < sent_seconds


def test_where_one_of_two_servers_stands_by_or_is_away_the_other_is_asked(
    server: Server, tmp_path: Path
) -> None:
    other = Server()
    server.status, server.body = 503, b'{"detail": "this server stands by"}'
    uplink = Uplink(f"{server.url},{other.url}")
    try:
        assert uplink.sync(REQUEST).number == 5
        assert uplink.url == other.url  # and it stays there
    finally:
        other.close()
    server.status, server.body = 200, encode_message(SyncReply(number=5))
    assert uplink.sync(REQUEST).number == 5
    server.objects[SHA256] = CONTENT
    uplink.fetch(SHA256, tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == CONTENT
