"""A server that plays the APIs of GitHub and GitLab, as far as comments go, with faults on demand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_a-token-that-nobody-may-see"


@dataclass(slots=True)
class Fault:
    """The next request of this method is answered so; `done` means it was carried out first."""

    method: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    done: bool = False


@dataclass(slots=True)
class World:
    comments: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # method and path with query
    may_write: bool = True
    longest: int = 65_536
    user: str | None = None  # None: a workflow's token, which may not ask who it is
    url: str = ""

    def add(self, body: str, author: str = "github-actions[bot]") -> dict[str, Any]:
        comment = {
            "id": 1000 + len(self.comments),
            "body": body,
            "user": {"login": author},
            "author": {"username": author},
        }
        self.comments.append(comment)
        return comment


class _Handler(BaseHTTPRequestHandler):
    world: World

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PATCH = do_PUT = do_GET  # noqa: N815 - the names that http.server calls

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        self.world.asked.append(f"{self.command} {self.path}")
        fault = next((each for each in self.world.faults if each.method == self.command), None)
        if fault is not None:
            self.world.faults.remove(fault)
            if fault.done:
                self._answer_to(body)
            self._send(fault.status, {"message": fault.message}, fault.headers)
        else:
            self._send(*self._answer_to(body))

    def _answer_to(self, body: dict[str, Any]) -> tuple[int, Any]:
        world, url = self.world, urlsplit(self.path)
        if TOKEN not in (self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""):
            return 401, {"message": "Bad credentials"}
        last = url.path.rpartition("/")[2]
        if last == "user":
            known = {"login": world.user, "username": world.user}
            return (
                (200, known) if world.user else (403, {"message": "Resource not accessible by integration"})
            )
        if self.command == "GET":
            listed = world.pulls if last == "pulls" else world.comments
            query = parse_qs(url.query)
            page, size = int(query["page"][0]), int(query["per_page"][0])
            return 200, listed[(page - 1) * size : page * size]
        if not world.may_write:
            return 403, {"message": "Resource not accessible by integration"}
        if len(body["body"]) > world.longest:
            return 422, {"message": "Validation Failed: body is too long"}
        if self.command == "POST":
            return 201, world.add(body["body"], world.user or "github-actions[bot]")
        found = [each for each in world.comments if str(each["id"]) == last]
        if not found:
            return 404, {"message": "Not Found"}
        found[0]["body"] = body["body"]
        return 200, found[0]

    def _send(self, status: int, answer: Any, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@contextmanager
def playing() -> Iterator[World]:
    world = World()
    handler = type("Handler", (_Handler,), {"world": world})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        world.url = f"http://127.0.0.1:{server.server_port}"
        yield world
        server.shutdown()
        thread.join(10)
