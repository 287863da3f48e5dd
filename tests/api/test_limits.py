"""What a caller cannot do to a server: send too much, send too slowly, or talk it out of its folder."""

from __future__ import annotations

import socket
import time
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from api.serving import Running, serving
from wattline.api import listening


def dial(server: Running) -> socket.socket:
    parts = urlsplit(server.url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)


def test_a_body_of_100_mb_is_refused_without_reading_it(server: Running) -> None:
    with dial(server) as line:
        line.sendall(
            b"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100000000\r\n\r\n{"
        )
        answer = line.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"application/problem+json" in answer


def test_a_body_that_does_not_say_its_size_is_cut_where_it_is_too_large(server: Running) -> None:
    with dial(server) as line:
        line.sendall(
            b"POST /api/v1/runs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        answer = b""
        try:
            for _ in range(64):
                line.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
        except OSError:
            pass
        answer = line.recv(65536)
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_an_object_must_be_what_its_name_says_and_not_too_large(tmp_path: Path) -> None:
    with serving(tmp_path / "home", conducts=False, object_bytes=1000) as running:
        name = sha256(b"right").hexdigest()
        wrong = running.call("PUT", f"/api/v1/objects/{name}", b"wrong")
        assert wrong.status == 422
        assert running.call("HEAD", f"/api/v1/objects/{name}").status == 404
        assert running.call("PUT", f"/api/v1/objects/{name}", b"right").status == 201
        assert running.call("GET", f"/api/v1/objects/{name}").body == b"right"
        large = b"x" * 1001
        too_large = running.call("PUT", f"/api/v1/objects/{sha256(large).hexdigest()}", large)
        assert too_large.status == 413
        assert not list((tmp_path / "home" / "objects" / "incoming").iterdir())


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/objects/../../etc/passwd",
        "/api/v1/objects/..%2f..%2fetc%2fpasswd",
        "/api/v1/objects/%2e%2e",
        "/api/v1/runs/..%2f..%2fwattline.db/jobs/train/log",
        "/api/v1/runs/%00/jobs/train/log",
        "/api/v1/runs/a/jobs/..%2f..%2f/log",
        "/api/v1/runs/" + "a" * 5000,
        "/api/v1/runs/%e2%80%ae",
    ],
)
def test_a_name_that_would_be_a_path_leads_nowhere(server: Running, path: str) -> None:
    answer = server.call("GET", path)
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_who_dribbles_a_request_in_is_let_go(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_HEADER_SECONDS", 1.0)
    with dial(server) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        began = time.monotonic()
        line.settimeout(30)
        dribbled = 0
        try:
            while time.monotonic() - began < 20:
                line.sendall(b"X-Slow: 1\r\n")
                dribbled += 1
                time.sleep(0.2)
        except OSError:
            pass
        assert time.monotonic() - began < 15
    assert server.call("GET", "/healthz").status == 200


def test_headers_without_end_are_refused(server: Running) -> None:
    with dial(server) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        try:
            for number in range(10_000):
                line.sendall(b"X-%d: %b\r\n" % (number, b"y" * 100))
        except OSError:
            pass
    assert server.call("GET", "/healthz").status == 200


@pytest.mark.parametrize(
    ("query", "said"),
    [("limit=0", "limit"), ("limit=x", "limit"), ("limit=1&limit=2", "twice"), ("surprise=1", "surprise")],
)
def test_a_query_that_is_wrong_is_told_by_name(server: Running, query: str, said: str) -> None:
    answer = server.call("GET", f"/api/v1/runs?{query}")
    assert answer.status == 422
    assert said in answer.json["detail"]


def test_a_fault_of_the_server_shows_no_traceback(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wattline.api.looking.newest_first", lambda _state: 1 / 0)
    answer = server.call("GET", "/api/v1/runs")
    assert answer.status == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["detail"] == "this is a fault of the server: ZeroDivisionError"


def test_a_method_that_is_not_there_names_those_that_are(server: Running) -> None:
    answer = server.call("DELETE", "/api/v1/runs")
    assert answer.status == 405
    assert set(answer.headers["allow"].split(", ")) >= {"GET", "POST"}
