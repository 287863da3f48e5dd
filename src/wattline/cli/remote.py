"""How do commands reach a server, where WATTLINE_URL names one? With the same words, objects and exit codes.

The standard library's client: a dozen kinds of calls, one at a time, do not earn a dependency that every
build machine would have to install. A call that is repeated after a lost answer carries the key of the first,
so it counts once.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from wattline.cli.printing import plain, print_json
from wattline.decoding import decode_json
from wattline.errors import UnavailableError, UsageError, WattlineError
from wattline.live import Home
from wattline.live.addresses import Servers
from wattline.plane.told import Steered

T = TypeVar("T")

SNAPSHOT = "/api/v1/snapshot"
_SECONDS = 60.0
_TRIES = 4
_PAUSE_SECONDS = 0.5
_MOST_ANSWER_BYTES = 256 << 20
_AGAIN = (429, 502, 503, 504)


class _Told(msgspec.Struct, kw_only=True):
    """What of a problem the command line shows."""

    detail: str = ""
    hint: str | None = None
    exit_code: int = 3
    missing: tuple[str, ...] = ()


class RemoteError(WattlineError):
    """What a server answered, with the exit code that the command would have had here."""

    def __init__(self, status: int, told: _Told) -> None:
        super().__init__(told.detail or f"the server answered {status}", hint=told.hint)
        self.status, self.missing = status, told.missing
        self.exit_code = told.exit_code


@dataclass(frozen=True, slots=True)
class Answered:
    body: bytes
    headers: Mapping[str, str]


class Server:
    """A server as the command line sees it; with commas between, who conducts and who stands by."""

    def __init__(self, url: str, token: str | None) -> None:
        self._servers = Servers(url, token)

    @property
    def url(self) -> str:
        return self._servers.url

    def get(self, path: str, *, accept: str = "application/json", **query: str | int) -> Answered:
        full = f"{path}?{urlencode(query)}" if query else path
        return self._call("GET", full, {"Accept": accept})

    def post(self, path: str, body: object, kind: type[T], key: str | None = None) -> T:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key or uuid.uuid4().hex}
        return self._decode(self._call("POST", path, headers, msgspec.json.encode(body)).body, kind)

    def has_object(self, sha256: str) -> bool:
        path = f"/api/v1/objects/{sha256}"
        try:
            self._call("HEAD", path, {})
        except RemoteError as error:
            if error.status == 404:
                return False
            self._call("GET", path, {})  # an answer to HEAD has no words; this one is refused with them
            raise
        return True

    def put_object(self, sha256: str, file: Path) -> None:
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(file.stat().st_size)}
        self._call("PUT", f"/api/v1/objects/{sha256}", headers, file)

    def show(self, path: str, *, as_json: bool, **query: str) -> None:
        """Print an answer as the command of the same name prints it here."""
        if as_json:
            print_json(json.loads(self.get(path, **query).body))
            return
        text = self.get(path, accept="text/plain", **query).body.decode(errors="replace")
        sys.stdout.write(plain(text))

    def show_posted(self, path: str, body: object, *, as_json: bool) -> None:
        """The same for what is more than an address holds."""
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": uuid.uuid4().hex,
            "Accept": "application/json" if as_json else "text/plain",
        }
        answered = self._call("POST", path, headers, msgspec.json.encode(body)).body
        if as_json:
            print_json(json.loads(answered))
        else:
            sys.stdout.write(plain(answered.decode(errors="replace")))

    def place_of(self, name: str | None) -> str:
        """The path of what a name stands for: a run, or one of its jobs."""
        found = json.loads(self.get("/api/v1/find", **({} if name is None else {"name": name})).body)
        if found["is_whole_run"]:
            return f"/api/v1/runs/{quote(found['run_id'])}"
        return path_of_job(found["jobs"][0])

    def jobs_of(self, name: str | None) -> list[str]:
        found = json.loads(self.get("/api/v1/find", **({} if name is None else {"name": name})).body)
        return [str(job) for job in found["jobs"]]

    def steer(self, name: str | None, want: str, to: str | None) -> Steered:
        body = {} if to is None else {"to": to}
        return self.post(f"{self.place_of(name)}/{want}", body, Steered)

    def _decode(self, body: bytes, kind: type[T]) -> T:
        try:
            return decode_json(body, kind)
        except msgspec.MsgspecError as error:
            raise UnavailableError(
                f"{self.url} answered something that this version cannot read: {error}",
                hint="is it a Wattline server, and of a version that fits?",
            ) from error

    def _call(
        self, method: str, path: str, headers: dict[str, str], body: bytes | Path | None = None
    ) -> Answered:
        """One call, repeated where it may not have been heard; each is the same however often it is made."""
        last = _TRIES * len(self._servers) - 1
        for attempt in range(last + 1):
            try:
                status, answered = self._once(method, path, headers, body)
            except (OSError, http.client.HTTPException) as error:
                if attempt == last or isinstance(error, ssl.SSLError):
                    raise UnavailableError(
                        f"{self.url} cannot be reached: {str(error) or type(error).__name__}",
                        hint="check WATTLINE_URL, and that the server runs",
                    ) from error
            else:
                if status < 400:
                    return answered
                if status not in _AGAIN or attempt == last:
                    raise _error_of(status, answered)
            self._servers.turn()
            if (attempt + 1) % len(self._servers) == 0:
                time.sleep(_PAUSE_SECONDS * 2 ** (attempt // len(self._servers)))
        raise AssertionError("the last try returns or raises")

    def _once(
        self, method: str, path: str, headers: dict[str, str], body: bytes | Path | None
    ) -> tuple[int, Answered]:
        connection, sent = self._servers.connect(_SECONDS), headers | self._servers.credentials
        try:
            if isinstance(body, Path):
                with body.open("rb") as file:
                    return self._exchange(connection, method, path, sent, file)
            return self._exchange(connection, method, path, sent, body)
        finally:
            connection.close()

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes | IO[bytes] | None,
    ) -> tuple[int, Answered]:
        # It may answer before it has read all of a body: a refusal is worth reading.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        data = response.read(_MOST_ANSWER_BYTES)
        return response.status, Answered(data, {name.lower(): value for name, value in response.getheaders()})


def path_of_job(job: str) -> str:
    run, _, phase = job.partition("/")
    return f"/api/v1/runs/{quote(run)}/jobs/{quote(phase)}"


def find_server() -> Server | None:
    """The server that the environment names; None: commands work on the state folder here."""
    url = os.environ.get("WATTLINE_URL")
    return server_at(url) if url else None


def say_here() -> None:
    """For a command that works on the state folder alone: who names a server is told that it is not asked."""
    if os.environ.get("WATTLINE_URL"):
        here = f"works on the state folder {Home.find().root}"
        sys.stderr.write(f"wattline: {here}; the server that WATTLINE_URL names is not asked\n")


def server_at(url: str) -> Server:
    return Server(url, os.environ.get("WATTLINE_TOKEN"))


def _error_of(status: int, answered: Answered) -> RemoteError:
    try:
        told = decode_json(answered.body, _Told)
    except msgspec.MsgspecError:
        told = _Told(
            detail=f"the server answered {status}", hint="is WATTLINE_URL that of a Wattline server?"
        )
    return RemoteError(status, told)


def path_part(what: str, name: str) -> str:
    """A name inside a path: one with a slash would be taken for another path, and none has one."""
    if "/" in name:
        raise UsageError(
            f"{what} {name[:100]!r} is not known here", hint=f"the name of a {what} has no slash"
        )
    return quote(name, safe="")
