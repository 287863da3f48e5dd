"""A receiver as a store: how do checkpoints reach another site over a link that is slow, long and breaks?

Parts are small and each is sent again until the far end has it, so little is lost when the link or the sender
dies. Nothing is remembered here: what has arrived is asked of the far end.
"""

from __future__ import annotations

import secrets
import ssl
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from http import HTTPStatus
from http.client import HTTPException
from threading import Lock
from typing import Final

from wattline.checkpoint.errors import CheckpointError, StorageError
from wattline.checkpoint.pacing import PacedConnection, Rate
from wattline.checkpoint.stores.contract import MissingError, Stored
from wattline.checkpoint.stores.names import check_arrival, check_name, check_prefix, check_range
from wattline.checkpoint.stores.wire import Peer, Wire, is_small

READ_BYTES: Final = 2**20  # of one answer: what a cut may take

# A stream waits for the far end's word after each part: so many fill 10 Mbit/s over 100 ms with 5 % loss.
_DEFAULT_STREAMS = 32
_HASHED_BYTES_PER_SECOND = 50e6  # by a far end whose disk is slow
_LEAST_PART_BYTES, _MOST_PART_BYTES = 2**14, 2**26
_MOST_PARTS = 2**26


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
        self._wire = Wire(Peer.parse(url, token, tls), rate, streams, patience_seconds, silence_seconds)

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
            piece = self._wire.ask("GET", target, is_urgent=self._wire.is_quiet).body
            pieces.append(piece)
            start += len(piece)
            length = None if length is None else length - len(piece)
            if len(piece) < wanted_bytes or length == 0:
                return b"".join(pieces)

    def put(self, name: str, data: bytes, *, replace: bool) -> bool:
        # The key lets the far end tell a repeat of this put, which may be late, from another one.
        headers = {"Idempotency-Key": secrets.token_hex(16)} | ({} if replace else {"If-None-Match": "*"})
        body = memoryview(data)
        answer = self._wire.ask("PUT", _object(name), body, headers, is_urgent=lambda: is_small(body))
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
        self._wire.open_ahead(min(self.streams, -(-size_bytes // _LEAST_PART_BYTES)))
        return _Arriving(self._wire, name, size_bytes, blake3)

    def delete(self, name: str) -> None:
        self._wire.ask("DELETE", _object(name), is_urgent=_never)

    def exclusive(self) -> AbstractContextManager[None]:
        """Nobody can be kept out from afar: a lock that a cut may end in the middle is none."""
        return nullcontext()

    def sweep(self, older_than_seconds: float) -> int:
        target = f"/v1/sweep?older_than_seconds={max(0, round(older_than_seconds))}"
        match self._wire.ask_json("POST", target, is_urgent=_never):
            case {"freed_bytes": int(freed_bytes)}:
                return freed_bytes
        raise CheckpointError(f"{self.address}: does not say what was swept")

    def _stored(self, row: object) -> Stored:
        match row:
            case [str(name), int(size_bytes), int() | float() as modified_at]:
                return Stored(name, size_bytes, modified_at)
        raise CheckpointError(f"{self.address}: lists {str(row)[:80]}, which is no object")


class _Arriving:
    def __init__(self, wire: Wire, name: str, size_bytes: int, digest: str) -> None:
        self._wire, self._name, self._size_bytes, self._lock = wire, name, size_bytes, Lock()
        self._query, self._under_way = f"{name}?size={size_bytes}&blake3={digest}", 0
        self._hash_seconds = size_bytes / _HASHED_BYTES_PER_SECOND
        self._key, self.part_bytes, self._missing = self._begin()

    def _begin(self) -> tuple[str, int, set[int]]:
        told = self._wire.ask_json("POST", f"/v1/arriving/{self._query}", think_seconds=self._hash_seconds)
        match told:
            case {"key": str(key), "part_bytes": int(size), "missing": [*runs]} if (
                0 < size <= _MOST_PART_BYTES
            ):
                return check_name(key), size, _numbers(runs, -(-self._size_bytes // size))
        raise CheckpointError(f"{self._wire.address}: does not say which parts of {self._name} are missing")

    @property
    def missing(self) -> Sequence[int]:
        with self._lock:
            return sorted(self._missing)

    def put(self, number: int, data: memoryview) -> None:
        left_bytes = self._size_bytes - number * self.part_bytes
        if number < 0 or left_bytes <= 0 or data.nbytes != min(self.part_bytes, left_bytes):
            raise CheckpointError(f"part {number} of {self._name} has {data.nbytes} bytes")
        with self._counted():
            try:
                target = f"/v1/parts/{self._key}?n={number}"
                self._wire.ask("PUT", target, data, is_urgent=self._are_all_under_way)
            except MissingError:
                self._require_whole()
            with self._lock:
                self._missing.discard(number)

    def finish(self) -> None:
        self._wire.ask("POST", f"/v1/arrived/{self._query}", think_seconds=self._hash_seconds)

    def _require_whole(self) -> None:
        """A part that comes late is there, with all others."""
        if self._begin()[2]:
            raise StorageError(
                f"{self._wire.address}: {self._name} is not arriving any more",
                hint="it was swept or differed; ask for it again",
            )

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1

    def _are_all_under_way(self) -> bool:
        """The whole waits for the slowest part: until then other parts use the time."""
        with self._lock:
            return self._under_way >= len(self._missing)


class _Writing:
    """A body in chunks, whose end is its commit."""

    def __init__(self, wire: Wire, connection: PacedConnection, target: str) -> None:
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


def _never() -> bool:
    """What is done late and twice would do harm: it waits."""
    return False


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
