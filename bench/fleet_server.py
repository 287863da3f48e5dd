"""The smallest server that agents can ask: the fleet's loop, sync and objects over HTTP, nothing else.

    python -m bench.fleet_server HOME FACILITY POLICY HOST PORT quick|patient

Runs are handed over through the inbox of HOME, as `wattline run` does beside another process.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from wattline.control import step
from wattline.control.sites import Timing, decode_request, encode_message
from wattline.errors import WattlineError
from wattline.live import Home
from wattline.live.fleet import FleetWorld
from wattline.plane.session import Session
from wattline.state import Event
from wattline.store import ObjectStore
from wattline.store.steps import StepJournal

QUICK = Timing(
    lease_seconds=6.0, grace_seconds=2.0, sync_seconds=0.5, supervisor_seconds=5.0, fence_seconds=1.0
)
PATIENT = Timing(
    lease_seconds=120.0, grace_seconds=60.0, sync_seconds=0.5, supervisor_seconds=60.0, fence_seconds=1.0
)
_SYNC = re.compile(r"/api/v1/sites/([A-Za-z0-9-]+)/sync")
_OBJECT = re.compile(r"/api/v1/objects/([0-9a-f]{64})")


def serve(home: Path, facility: str, policy: str, host: str, port: int, timing: Timing) -> None:
    session = Session(Home(home))
    while not session.become_writer("fleet server"):
        time.sleep(0.2)
    pending: list[Event] = [
        session.adopt(session.keep_facility(facility), session.keep_policy(policy), time.time())
    ]
    assert session.state is not None
    state = session.state
    offset = max(time.time(), state.at) - time.monotonic()

    def requests() -> list[Event]:
        first = list(pending)
        pending.clear()
        return [*first, *session.requests()]

    def is_writer() -> bool:
        token = session.store.lease.held
        assert token is not None
        session.store.lease.renew(token)
        return True

    fleet = FleetWorld(
        state=state,
        timing=timing,
        clock=lambda: time.monotonic() + offset,
        requests=requests,
        is_writer=is_writer,
    )
    server = ThreadingHTTPServer((host, port), _handler(fleet, session.objects))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    journal = StepJournal(session.store.journal, session.answered)
    parsed = session.policy_of(state.adopted.get("policy_sha256", "") or pending[0].policy_sha256)  # type: ignore[union-attr]
    while True:
        decision = step(fleet, state, parsed, journal)
        due = fleet.now() + 0.2
        fleet.sleep_until(due if decision.due_at is None else min(due, decision.due_at))


def _handler(fleet: FleetWorld, objects: ObjectStore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 30.0

        def do_POST(self) -> None:
            if _SYNC.fullmatch(self.path) is None:
                self._say(404)
                return
            try:
                request = decode_request(self.rfile.read(int(self.headers["Content-Length"])))
                self._say(200, encode_message(fleet.sync(request)))
            except WattlineError as error:
                self._say(503, json.dumps({"detail": error.message}).encode())

        def do_GET(self) -> None:
            found = _OBJECT.fullmatch(self.path)
            path = objects.path(f"sha256:{found[1]}") if found else None
            is_there = path is not None and path.exists()
            self._say(200 if is_there else 404, path.read_bytes() if path is not None and is_there else b"{}")

        do_HEAD = do_GET  # noqa: N815 - as the standard library calls it

        def do_PUT(self) -> None:
            found = _OBJECT.fullmatch(self.path)
            digest = objects.put_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            self._say(201 if found and digest == f"sha256:{found[1]}" else 422, b"{}")

        def _say(self, status: int, body: bytes = b"{}") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler


if __name__ == "__main__":
    home, facility, policy, host, port, timing = sys.argv[1:]
    serve(Path(home), facility, policy, host, int(port), QUICK if timing == "quick" else PATIENT)
