"""A receiver as a store: how do checkpoints reach another site over a link that is slow, long and breaks?

Parts are small and each is sent again until the far end has it, so little is lost when the link or the sender
dies. Nothing is remembered here: what has arrived is asked of the far end.
"""

from __future__ import annotations

import json
import random
import re
import secrets
import ssl
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import BoundedSemaphore, Lock
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, StorageError
from wattline.checkpoint.pacing import Answer, PacedConnection, Rate
from wattline.checkpoint.stores.contract import MissingError, Stored
from wattline.checkpoint.stores.names import check_arrival, check_name, check_prefix, check_range
from wattline.errors import UsageError

READ_BYTES: Final = 2**20  # of one answer: what a cut may take
HASH_DIGITS: Final = 32  # of the hash that goes with a body: enough against accidents
_TOKEN = re.compile(r"[!-~]{16,4096}", re.ASCII)

# A stream waits for the far end's word after each part: so many fill 10 Mbit/s over 100 ms with 5 % loss.
_DEFAULT_STREAMS = 32
_LONGEST_PAUSE_SECONDS = 5.0
_HASHED_BYTES_PER_SECOND = 50e6  # by a far end whose disk is slow
_MOST_PART_BYTES = 2**26
_MOST_PARTS = 2**26
_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class HttpStore:
    """Implements Store against a receiver; threads share its connections, at most `streams` of them.

    What fails in a way that may pass is tried again for `patience_seconds`, then StorageError says what it
    was. `silence_seconds` is how long a receiver may say nothing before it counts as gone.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        rate: Rate | None = None,
        streams: int = _DEFAULT_STREAMS,
        tls: ssl.SSLContext | None = None,
        patience_seconds: float = 120.0,
        silence_seconds: float = 60.0,
    ) -> None:
        self.streams = streams
        self._wire = _Wire(_Peer.parse(url, token, tls), rate, streams, patience_seconds, silence_seconds)

    @property
    def address(self) -> str:
        return self._wire.address

    def list(self, prefix: str = "") -> Sequence[Stored]:
        rows = self._wire.ask_json("GET", f"/v1/objects?prefix={check_prefix(prefix)}")
        if not isinstance(rows, list):
            raise CheckpointError(f"{self.address}: answers with something that is no listing")
        return [self._stored(row) for row in rows]

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        check_range(name, start, length)
        pieces = []
        while True:
            wanted_bytes = READ_BYTES if length is None else min(READ_BYTES, length)
            target = f"{_object(name)}?start={start}&length={wanted_bytes}"
            piece = self._wire.ask("GET", target).body
            pieces.append(piece)
            start += len(piece)
            length = None if length is None else length - len(piece)
            if len(piece) < wanted_bytes or length == 0:
                return b"".join(pieces)

    def put(self, name: str, data: bytes, *, replace: bool) -> bool:
        # The key lets the far end tell a repeat of this put from somebody else's.
        headers = {} if replace else {"If-None-Match": "*", "Idempotency-Key": secrets.token_hex(16)}
        answer = self._wire.ask("PUT", _object(name), memoryview(data), headers)
        return answer.status != HTTPStatus.PRECONDITION_FAILED

    @contextmanager
    def create(self, name: str) -> Iterator[_Writing]:
        """On one connection from the first byte to the last: when that breaks, the writing has failed."""
        target = _object(name)
        with self._wire.connected() as connection:
            writing = _Writing(self._wire, connection, target)
            try:
                yield writing
            finally:
                writing.is_open = False

    def arrive(self, name: str, size_bytes: int, blake3: str) -> _Arriving:
        check_arrival(name, size_bytes, blake3)
        return _Arriving(self._wire, name, size_bytes, blake3)

    def delete(self, name: str) -> None:
        self._wire.ask("DELETE", _object(name))

    def exclusive(self) -> AbstractContextManager[None]:
        """Nobody can be kept out from afar: a lock that a cut may end in the middle is none."""
        return nullcontext()

    def sweep(self, older_than_seconds: float) -> int:
        target = f"/v1/sweep?older_than_seconds={max(0, round(older_than_seconds))}"
        match self._wire.ask_json("POST", target):
            case {"freed_bytes": int(freed_bytes)}:
                return freed_bytes
        raise CheckpointError(f"{self.address}: does not say what was swept")

    def _stored(self, row: object) -> Stored:
        match row:
            case [str(name), int(size_bytes), int() | float() as modified_at]:
                return Stored(name, size_bytes, modified_at)
        raise CheckpointError(f"{self.address}: lists {str(row)[:80]}, which is no object")


class _Arriving:
    def __init__(self, wire: _Wire, name: str, size_bytes: int, digest: str) -> None:
        self._wire, self._name, self._size_bytes, self._lock = wire, name, size_bytes, Lock()
        self._query = f"{name}?size={size_bytes}&blake3={digest}"
        self._hash_seconds = size_bytes / _HASHED_BYTES_PER_SECOND
        told = wire.ask_json("POST", f"/v1/arriving/{self._query}", self._hash_seconds)
        match told:
            case {"part_bytes": int(part_bytes), "missing": [*runs]} if 0 < part_bytes <= _MOST_PART_BYTES:
                self.part_bytes = part_bytes
                self._missing = _numbers(runs, -(-size_bytes // part_bytes))
            case _:
                raise CheckpointError(f"{wire.address}: does not say which parts of {name} are missing")

    @property
    def missing(self) -> Sequence[int]:
        with self._lock:
            return sorted(self._missing)

    def put(self, number: int, data: memoryview) -> None:
        left_bytes = self._size_bytes - number * self.part_bytes
        if number < 0 or left_bytes <= 0 or data.nbytes != min(self.part_bytes, left_bytes):
            raise CheckpointError(f"part {number} of {self._name} has {data.nbytes} bytes")
        self._wire.ask("PUT", f"/v1/arriving/{self._query}&part={number}", data)
        with self._lock:
            self._missing.discard(number)

    def finish(self) -> None:
        self._wire.ask("POST", f"/v1/arrived/{self._query}", seconds=self._hash_seconds)


class _Writing:
    """A body in chunks, whose end is its commit."""

    def __init__(self, wire: _Wire, connection: PacedConnection, target: str) -> None:
        self._wire, self._connection, self._target = wire, connection, target
        self.is_open = True
        headers = wire.headers(None, {"Transfer-Encoding": "chunked"})
        with self._storing():
            connection.begin("PUT", wire.path + target, headers)

    def write(self, data: memoryview) -> None:
        if data.nbytes:
            with self._storing():
                self._connection.send_paced(b"%x\r\n" % data.nbytes)
                self._connection.send_paced(data)
                self._connection.send_paced(b"\r\n")

    def finish(self) -> None:
        with self._storing():
            self._connection.send_paced(b"0\r\n\r\n")
            self._wire.check(self._connection.answer())
        self.is_open = False

    @contextmanager
    def _storing(self) -> Iterator[None]:
        if not self.is_open:
            raise CheckpointError(f"{self._wire.address}{self._target} is not being written any more")
        try:
            yield
        except (OSError, HTTPException) as error:
            with suppress(OSError, HTTPException):  # it may have said why before it hung up
                self._wire.check(self._connection.answer())
            raise StorageError(
                f"{self._wire.address}{self._target}: could not be written: {error}"
            ) from error


@dataclass(frozen=True, slots=True)
class _Peer:
    """Whom to speak to."""

    scheme: str
    host: str
    port: int | None
    path: str
    token: str
    tls: ssl.SSLContext | None

    @classmethod
    def parse(cls, url: str, token: str, tls: ssl.SSLContext | None) -> _Peer:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise UsageError(f"{url[:80]!r} is no URL: {error}") from error
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.username:
            raise UsageError(
                f"{parts.scheme}://{parts.hostname}: a receiver's URL is http(s)://host[:port][/path]",
                hint="the token is given apart from the URL",
            )
        if not _TOKEN.fullmatch(token):
            raise UsageError(f"a token has 16 to 4096 visible ASCII characters, this one has {len(token)}")
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"), token, tls)

    def connection(self, rate: Rate | None, streams: int) -> PacedConnection:
        if self.scheme == "https":
            context = self.tls or ssl.create_default_context()
            http: HTTPConnection = HTTPSConnection(self.host, self.port, context=context)
        else:
            http = HTTPConnection(self.host, self.port)
        return PacedConnection(http, rate, streams)

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{f':{self.port}' if self.port else ''}{self.path}"


class _Wire:
    """Asks until there is an answer, or patience ends."""

    def __init__(
        self, peer: _Peer, rate: Rate | None, streams: int, patience_seconds: float, silence_seconds: float
    ) -> None:
        self._peer, self._rate, self._streams = peer, rate, streams
        self._patience_seconds, self._silence_seconds = patience_seconds, silence_seconds
        self._places, self._idle, self._lock = BoundedSemaphore(streams), list[PacedConnection](), Lock()
        weakref.finalize(self, _close_all, self._idle)

    @property
    def address(self) -> str:
        return self._peer.address

    @property
    def path(self) -> str:
        return self._peer.path

    def ask_json(self, method: str, target: str, seconds: float = 0.0) -> Any:
        try:
            return json.loads(self.ask(method, target, seconds=seconds).body)
        except (ValueError, RecursionError):
            raise CheckpointError(f"{self.address}: does not answer in JSON; is it a receiver?") from None

    def ask(
        self,
        method: str,
        target: str,
        body: memoryview | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        seconds: float = 0.0,
    ) -> Answer:
        """Each may be repeated: it says what is to be, not what is to be done. `seconds` are for thinking."""
        gives_up_at = time.monotonic() + self._patience_seconds
        pause_seconds = 0.1
        while True:
            try:
                answer = self._exchange(method, target, body, self.headers(body, headers), seconds)
                if answer.status not in _TRY_AGAIN:
                    return self.check(answer)
                why = f"{answer.status} {answer.why}"
            except (OSError, HTTPException) as error:
                why = str(error) or type(error).__name__
            if time.monotonic() + pause_seconds > gives_up_at:
                raise StorageError(
                    f"{self.address}: {method} did not go through in {self._patience_seconds:g} s: {why}",
                    hint="what has arrived stays there: try again when the link is back",
                )
            time.sleep(pause_seconds * random.uniform(0.5, 1.0))  # noqa: S311 - so that streams come apart
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    def headers(self, body: memoryview | None, more: Mapping[str, str]) -> Mapping[str, str]:
        headers = {"Authorization": f"Bearer {self._peer.token}", **more}
        if body is not None:
            headers |= {
                "Content-Length": str(body.nbytes),
                "Content-BLAKE3": blake3(body).hexdigest()[:HASH_DIGITS],
            }
        return headers

    def check(self, answer: Answer) -> Answer:
        said = f"{self.address}: {answer.why or answer.status}"
        match answer.status:
            case 200 | 204 | 412:
                return answer
            case 404:
                raise MissingError(said)
            case 401:
                raise CheckpointError(said, hint="give the token that the receiver was started with")
            case 507 | 503:
                raise StorageError(said)
        raise CheckpointError(said)

    @contextmanager
    def connected(self) -> Iterator[PacedConnection]:
        """A connection of one's own."""
        with self._places:
            connection = self._peer.connection(self._rate, self._streams)
            try:
                connection.set_silence(self._silence_seconds)
                yield connection
            finally:
                connection.close()

    def _exchange(
        self, method: str, target: str, body: memoryview | None, headers: Mapping[str, str], seconds: float
    ) -> Answer:
        with self._places:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            connection = connection or self._peer.connection(self._rate, self._streams)
            try:
                connection.set_silence(self._silence_seconds + seconds)
                connection.begin(method, self._peer.path + target, headers)
                answer = _after_body(connection, body)
            except BaseException:
                connection.close()
                raise
            with self._lock:
                self._idle.append(connection)
        return answer


def _after_body(connection: PacedConnection, body: memoryview | None) -> Answer:
    try:
        if body is not None:
            connection.send_paced(body)
    except ConnectionError as error:
        try:
            return connection.answer()  # it may have said why before it hung up
        except (OSError, HTTPException):
            raise error from None
    return connection.answer()


def _close_all(connections: list[PacedConnection]) -> None:
    for connection in connections:
        connection.close()


def _object(name: str) -> str:
    return f"/v1/objects/{check_name(name)}"


def _numbers(runs: Sequence[object], count: int) -> set[int]:
    numbers: set[int] = set()
    for run in runs:
        match run:
            case [int(first), int(length)] if 0 <= first < first + length <= min(count, _MOST_PARTS):
                numbers.update(range(first, first + length))
            case _:
                raise CheckpointError(f"parts {str(run)[:40]} of {count} are said to be missing")
    return numbers
