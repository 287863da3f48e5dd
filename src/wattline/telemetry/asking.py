"""Asking: how is a meter asked over HTTP without waiting for ever, or swallowing more than it should?

The standard library's client: it follows no redirect, asks for no compression, and hands out an answer piece
by piece, so a limit in bytes and one in seconds hold for the whole of it.
"""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

from wattline.errors import UnavailableError

_PIECE_BYTES = 1 << 18
_MOST_ERROR_BYTES = 4096
_MOST_SECRET_BYTES = 4096
_REDIRECTS = range(300, 400)


class MeterError(UnavailableError):
    """A meter could not be asked, or what it said is no answer; the message says which and why."""


class UnansweredError(MeterError):
    """Nobody answers there, or not in time."""


class TooMuchError(MeterError):
    """The answer is larger than anything that could be meant."""


class Asker:
    """One server; a connection is kept from one question to the next, and made anew where it broke."""

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        secret_file: str = "",
        ca_file: str = "",
    ) -> None:
        parts = urlsplit(url)
        self._url, self._prefix = url, parts.path.rstrip("/")
        self._host, self._port, self._is_tls = parts.hostname or "", parts.port, parts.scheme == "https"
        self._timeout_seconds = timeout_seconds
        self._secret_file, self._ca_file = secret_file, ca_file
        self._connection: HTTPConnection | None = None

    def ask(
        self,
        path: str,
        *,
        most_bytes: int,
        method: str = "GET",
        body: bytes | None = None,
        kind: str = "application/json",
    ) -> bytes:
        """The body of a good answer in JSON; MeterError otherwise.

        What only asks is asked twice where a connection that was kept turns out to be gone.
        """
        deadline = time.monotonic() + self._timeout_seconds
        was_kept = self._connection is not None
        try:
            return self._exchange(method, path, body, kind, most_bytes, deadline)
        except (OSError, HTTPException) as error:
            self.close()
            if not was_kept or method == "PATCH" or isinstance(error, TimeoutError):
                raise UnansweredError(f"{self._url}: no answer: {_say(error)}") from None
        try:
            return self._exchange(method, path, body, kind, most_bytes, deadline)
        except (OSError, HTTPException) as error:
            self.close()
            raise UnansweredError(f"{self._url}: no answer: {_say(error)}") from None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(
        self, method: str, path: str, body: bytes | None, kind: str, most_bytes: int, deadline: float
    ) -> bytes:
        connection = self._connect()
        headers = {"Accept": "application/json", "User-Agent": "wattline", **self._authorization()}
        if body is not None:
            headers["Content-Type"] = kind
        connection.request(method, self._prefix + path, body, headers)
        with connection.getresponse() as response:
            return self._hear(response, most_bytes, deadline)

    def _hear(self, response: HTTPResponse, most_bytes: int, deadline: float) -> bytes:
        if response.status in _REDIRECTS:
            self.close()  # a redirect would carry what is secret to somebody else
            where = (response.getheader("Location") or "")[:200]
            hint = "write the URL that it leads to into the facility document"
            raise MeterError(f"{self._url}: answered with a redirect to {where!r}: not followed", hint=hint)
        is_good = response.status < 300
        told = self._read(response, most_bytes if is_good else _MOST_ERROR_BYTES, deadline, cut=not is_good)
        if not is_good:
            words = " ".join((told.decode("utf-8", "replace").strip() or response.reason).split())[:200]
            raise MeterError(f"{self._url}: answered with {response.status}: {_printable(words)}")
        got = (response.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        if told and got != "application/json" and not got.endswith("+json"):
            self.close()
            raise MeterError(
                f"{self._url}: answered with {_printable(got)[:80] or 'no content type'}, not JSON"
            )
        return told

    def _read(self, response: HTTPResponse, most_bytes: int, deadline: float, *, cut: bool) -> bytes:
        pieces, size = [], 0
        while piece := response.read1(_PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > most_bytes or time.monotonic() > deadline:
                self.close()
                if cut:
                    break
                if size > most_bytes:
                    raise TooMuchError(f"{self._url}: the answer is larger than {most_bytes:,} bytes")
                raise UnansweredError(f"{self._url}: the answer took longer than {self._timeout_seconds:g} s")
        if response.length:  # it said that there would be more
            self.close()
            raise MeterError(f"{self._url}: the answer broke off {response.length:,} bytes before its end")
        return b"".join(pieces)

    def _connect(self) -> HTTPConnection:
        if self._connection is None:
            if self._is_tls:
                trusted = ssl.create_default_context(cafile=self._ca_file or None)
                self._connection = HTTPSConnection(
                    self._host, self._port, timeout=self._timeout_seconds, context=trusted
                )
            else:
                self._connection = HTTPConnection(self._host, self._port, timeout=self._timeout_seconds)
        return self._connection

    def _authorization(self) -> Mapping[str, str]:
        """Read each time: whoever changes a secret changes a file, and nothing has to start again."""
        if not self._secret_file:
            return {}
        secret = read_secret(self._secret_file)
        if ":" in secret:  # a user and a password
            return {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
        return {"Authorization": f"Bearer {secret}"}


def read_secret(path: str) -> str:
    """What a file of one line holds; it is in no message."""
    try:
        with Path(path).open("rb") as file:
            secret = file.read(_MOST_SECRET_BYTES + 1).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not plain text"
        raise MeterError(f"{path}: the secret cannot be read: {why}") from None
    if not secret or len(secret) > _MOST_SECRET_BYTES or not secret.isprintable():
        raise MeterError(f"{path}: a secret is one line of up to {_MOST_SECRET_BYTES} printable characters")
    return secret


def _say(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    return _printable(str(getattr(error, "strerror", None) or str(error) or type(error).__name__))[:200]


def _printable(words: str) -> str:
    return "".join(character if character.isprintable() else "�" for character in words)
