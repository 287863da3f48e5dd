"""The journal as server-sent events: in order, from where the client was, and as it happens."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from api.serving import Running, serving
from wattline.api import listening


def ids(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"^id: (\d+)$", text, re.MULTILINE)]


def test_a_client_that_comes_back_misses_nothing(server: Running) -> None:
    server.wait(server.submit("true", name="heard"), "succeeded")
    last = server.get("/readyz")["record"]
    all_of_it = server.call("GET", f"/api/v1/events?after=0&until={last}").body.decode()
    known = ids(all_of_it)
    assert known == sorted(set(known))
    middle = known[len(known) // 2]
    rest = server.call("GET", f"/api/v1/events?until={last}", headers={"Last-Event-ID": str(middle)})
    assert ids(rest.body.decode()) == [seq for seq in known if seq > middle]


def test_what_happens_is_heard_while_it_happens(server: Running) -> None:
    with urlopen(Request(server.url + "/api/v1/events"), timeout=30) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.readline() == b": listening\n"
        run = server.submit("true", name="live")
        for line in stream:
            if line.startswith(b"data: ") and run.encode() in line:
                told = json.loads(line[6:])
                break
    assert any(event["event"] == "RunSubmitted" and event["run"] == run for event in told["events"])


def test_a_place_in_the_journal_that_is_none_is_refused(server: Running) -> None:
    answer = server.call("GET", "/api/v1/events", headers={"Last-Event-ID": "latest"})
    assert answer.status == 422


def test_a_server_that_leaves_lets_go_of_who_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_LEAVE_SECONDS", 60)
    with serving(tmp_path / "home", conducts=False) as running:
        stream = urlopen(Request(running.url + "/api/v1/events"), timeout=60)
        assert stream.readline() == b": listening\n"
        began = time.monotonic()
    assert time.monotonic() - began < 30  # uvicorn would wait a minute for it
    assert stream.read() == b"\n"
    stream.close()
