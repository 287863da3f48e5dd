"""The uplink: how does an agent reach its control plane?

Sync goes over a connection of its own, with little time and few bytes: control traffic waits for no file.
Files come and go by their SHA-256, no faster than the link's share for artifacts. Where there are several
servers, one that does not answer or stands by is followed by the next.
"""

from __future__ import annotations

import hashlib
import json
import os
import ssl
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path

import msgspec

from wattline.checkpoint import Rate
from wattline.control.sites import SyncReply, SyncRequest, decode_reply, encode_message
from wattline.decoding import decode_json
from wattline.errors import RefusedError, UnavailableError
from wattline.live.addresses import Servers

SYNC_SECONDS = 10.0
FILE_SECONDS = 60.0
_PIECE_BYTES = 1 << 16
_MOST_REPLY_BYTES = 16 << 20
_MOST_PROBLEM_BYTES = 64 << 10


class Uplink:
    """The servers of one control plane, with commas between; every call has its own connection and time."""

    def __init__(self, url: str, token: str = "", *, tls: ssl.SSLContext | None = None) -> None:
        self._servers = Servers(url, token, tls)

    @property
    def url(self) -> str:
        return self._servers.url

    def sync(self, request: SyncRequest, timeout_seconds: float = SYNC_SECONDS) -> SyncReply:
        body, path = encode_message(request), f"/api/v1/sites/{request.site}/sync"
        response, connection = self._ask("POST", path, timeout_seconds, body)
        try:
            return decode_reply(self._read(response))
        finally:
            connection.close()

    def tell_log(self, site: str, attempt: str, offset: int, piece: bytes) -> int:
        """A piece of what an attempt printed; how many bytes of it are there then."""
        run, phase, number = attempt.split("/")
        path = f"/api/v1/sites/{site}/runs/{run}/jobs/{phase}/attempts/{number}/log?offset={offset}"
        response, connection = self._ask("PUT", path, SYNC_SECONDS, piece)
        try:
            return decode_json(self._read(response), _LogKept).size_bytes
        except msgspec.MsgspecError as error:
            raise UnavailableError(f"server {self.url}: its answer cannot be read: {error}") from error
        finally:
            connection.close()

    def fetch(self, sha256: str, target: Path, rate: Rate | None = None) -> None:
        """An object into a file, once it is shown to be what its name says."""
        response, connection = self._ask("GET", f"/api/v1/objects/{sha256}", FILE_SECONDS)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        digest = hashlib.sha256()
        try:
            with draft.open("wb") as file:
                while piece := self._piece(response):
                    if rate is not None:
                        rate.take(len(piece))
                    digest.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            if digest.hexdigest() != sha256:
                raise UnavailableError(f"object {sha256}: what came has another SHA-256")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
            connection.close()

    def push(self, sha256: str, source: Path, rate: Rate | None = None) -> None:
        """A file to the server; nothing happens where it is there already."""
        try:
            _, connection = self._ask("HEAD", f"/api/v1/objects/{sha256}", SYNC_SECONDS)
        except RefusedError:
            pass
        else:
            connection.close()
            return
        with source.open("rb") as file:

            def read(size_bytes: int) -> bytes:
                piece = file.read(min(size_bytes, _PIECE_BYTES))
                if rate is not None and piece:
                    rate.take(len(piece))
                return piece

            size_bytes = source.stat().st_size
            _, connection = self._ask("PUT", f"/api/v1/objects/{sha256}", FILE_SECONDS, read, size_bytes)
        connection.close()

    def _ask(
        self,
        method: str,
        path: str,
        seconds: float,
        body: bytes | Callable[[int], bytes] | None = None,
        size_bytes: int = 0,
    ) -> tuple[HTTPResponse, HTTPConnection]:
        """Each server once, but for a file that was read by then: whoever sends it begins again."""
        tries = 1 if callable(body) else len(self._servers)
        for left in range(tries - 1, -1, -1):
            try:
                return self._ask_one(method, path, seconds, body, size_bytes)
            except UnavailableError:
                self._servers.turn()
                if not left:
                    raise
        raise AssertionError("there is a server at least")

    def _ask_one(
        self,
        method: str,
        path: str,
        seconds: float,
        body: bytes | Callable[[int], bytes] | None,
        size_bytes: int,
    ) -> tuple[HTTPResponse, HTTPConnection]:
        connection, headers, data = self._servers.connect(seconds), self._servers.credentials, body
        if callable(body):
            headers |= {"Content-Length": str(size_bytes), "Content-Type": "application/octet-stream"}
            data = _Reader(body)  # type: ignore[assignment]
        elif body is not None:
            headers["Content-Type"] = "application/json" if method == "POST" else "application/octet-stream"
        try:
            connection.request(method, path, data, headers)  # type: ignore[arg-type]
            response = connection.getresponse()
        except (OSError, HTTPException) as error:
            connection.close()
            raise UnavailableError(
                f"server {self.url}: {_why(error)}",
                hint="it is asked again; see whether the way there is open",
            ) from error
        if response.status >= 300:
            try:
                raise self._problem(method, response)
            finally:
                connection.close()
        return response, connection

    def _read(self, response: HTTPResponse) -> bytes:
        try:
            raw = response.read(_MOST_REPLY_BYTES + 1)
        except (OSError, HTTPException) as error:
            raise UnavailableError(f"server {self.url}: {_why(error)}") from error
        if len(raw) > _MOST_REPLY_BYTES:
            raise UnavailableError(f"server {self.url}: an answer has more than {_MOST_REPLY_BYTES} bytes")
        return raw

    def _piece(self, response: HTTPResponse) -> bytes:
        try:
            return response.read(_PIECE_BYTES)
        except (OSError, HTTPException) as error:
            raise UnavailableError(f"server {self.url}: {_why(error)}") from error

    def _problem(self, method: str, response: HTTPResponse) -> Exception:
        """What the server said, where it said it as a problem; 5xx may pass, and so do calls that came too
        slowly or too many at once; what else is 4xx will not."""
        detail, hint = "", None
        try:
            told = json.loads(response.read(_MOST_PROBLEM_BYTES)) if method != "HEAD" else {}
            if isinstance(told, dict):
                detail, hint = str(told.get("detail", ""))[:500], str(told.get("hint") or "")[:500] or None
        except (ValueError, OSError, HTTPException, RecursionError):
            detail = ""
        say = f"server {self.url}: {response.status}{': ' + detail if detail else ''}"
        may_pass = response.status >= 500 or response.status in (408, 429)
        return UnavailableError(say, hint=hint) if may_pass else RefusedError(say, hint=hint)


class _LogKept(msgspec.Struct):
    size_bytes: int


class _Reader:
    """What `http.client` takes for a file."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.read = read


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__
