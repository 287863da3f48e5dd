"""Wire: how is something asked of a receiver until there is an answer, and soon?

On a link that loses packets a single answer may take ten times as long as most. Where one thing waits for the
next, such a question is put again on another connection, and the first answer counts.
"""

from __future__ import annotations

import json
import random
import re
import select
import ssl
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import BoundedSemaphore, Lock, Thread
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, StorageError
from wattline.checkpoint.pacing import Answer, PacedConnection, Rate
from wattline.checkpoint.stores.contract import MissingError
from wattline.errors import UsageError

HASH_DIGITS: Final = 32  # of the hash that goes with a body: enough against accidents
_TOKEN = re.compile(r"[!-~]{16,4096}", re.ASCII)
_LONGEST_PAUSE_SECONDS = 5.0
_MOST_COPIES = 3  # of a question that waits for its answer
_SMALL_BODY_BYTES = 2**16
_FEW_PACKETS_BYTES = 2**12
_LEAST_LATE_SECONDS, _FIRST_LATE_SECONDS = 0.15, 0.2
_REMEMBERED = 16  # answers, about
_QUIET = 2
_COPY_SECONDS = 1.0  # for putting a question again, while the first may be answered
_CAUTION = 10  # what a far end is given to think is so many times what it takes
_STALLED_SECONDS = 1.0
_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom to speak to."""

    scheme: str
    host: str
    port: int | None
    path: str
    token: str
    tls: ssl.SSLContext | None

    @classmethod
    def parse(cls, url: str, token: str, tls: ssl.SSLContext | None) -> Peer:
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


class Usual:
    """How long answers take: one that takes longer than the mean is late, for most take less."""

    def __init__(self) -> None:
        self._lock, self._mean_seconds = Lock(), _FIRST_LATE_SECONDS

    @property
    def late_seconds(self) -> float:
        return max(_LEAST_LATE_SECONDS, self._mean_seconds)

    def note(self, seconds: float) -> None:
        with self._lock:
            self._mean_seconds += (seconds - self._mean_seconds) / _REMEMBERED


@dataclass(frozen=True, slots=True)
class _Question:
    method: str
    target: str
    body: memoryview | None
    headers: Mapping[str, str]
    think_seconds: float
    is_urgent: Callable[[], bool]

    @property
    def size_class(self) -> int:
        return 0 if self.body is None else (self.body.nbytes // _FEW_PACKETS_BYTES).bit_length()


class Wire:
    """Asks until there is an answer, or patience ends."""

    def __init__(
        self, peer: Peer, rate: Rate | None, streams: int, patience_seconds: float, silence_seconds: float
    ) -> None:
        self._peer, self._rate, self._streams = peer, rate, streams
        self._patience_seconds, self._silence_seconds = patience_seconds, silence_seconds
        self._places, self._idle, self._lock = BoundedSemaphore(streams), list[PacedConnection](), Lock()
        self._usual = defaultdict[int, Usual](Usual)  # by how much is sent, in powers of two
        self._is_open_ahead, self._exchanges = False, 0
        weakref.finalize(self, _close_all, self._idle)

    @property
    def address(self) -> str:
        return self._peer.address

    @property
    def path(self) -> str:
        return self._peer.path

    def ask_json(self, method: str, target: str, **options: Any) -> Any:
        try:
            return json.loads(self.ask(method, target, **options).body)
        except (ValueError, RecursionError):
            raise CheckpointError(f"{self.address}: does not answer in JSON; is it a receiver?") from None

    def ask(
        self,
        method: str,
        target: str,
        body: memoryview | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
        *,
        think_seconds: float = 0.0,
        is_urgent: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """Each may be put again: it says what is to be, not what is to be done.

        An urgent one is put again while its answer is late.
        """
        question = _Question(method, target, body, self.headers(body, headers), think_seconds, is_urgent)
        gives_up_at = time.monotonic() + self._patience_seconds
        pause_seconds = 0.1
        while True:
            try:
                answer = self._exchange(question)
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

    def _exchange(self, question: _Question) -> Answer:
        silence_seconds, usual = (
            self._silence_seconds + question.think_seconds,
            self._usual[question.size_class],
        )
        late_seconds = usual.late_seconds + question.think_seconds / _CAUTION
        with ExitStack() as held:
            held.enter_context(self._exchanging())
            asked = [self._put(question, self._connection(), silence_seconds)]
            held.callback(_close_all, asked)
            began, stalled_bytes = time.monotonic(), 0
            late_at = began + late_seconds
            while (first := _first_to_answer(asked, late_seconds / 4)) is None:
                if (now := time.monotonic()) >= began + silence_seconds:
                    raise TimeoutError("timed out")
                if now > began + _STALLED_SECONDS:
                    stalled_bytes = max(stalled_bytes, asked[0].waiting_bytes())
                if now >= late_at and self._may_put_again(question, len(asked)):
                    held.callback(self._places.release)
                    late_at = now + late_seconds
                    with suppress(OSError):  # the first may be answered all the same
                        asked.append(self._put(question, self._connection(), _COPY_SECONDS))
            first.set_silence(silence_seconds)
            answer = first.answer()
            asked.remove(first)
        with self._lock:
            self._idle.append(first)
        usual.note(time.monotonic() - began)
        if self._rate is not None:
            self._rate.owe(stalled_bytes)  # let go in one second, they landed in another, when a cut ended
        return answer

    def _may_put_again(self, question: _Question, times: int) -> bool:
        """If so, the place for it is taken."""
        return times < _MOST_COPIES and question.is_urgent() and self._places.acquire(blocking=False)

    def is_quiet(self) -> bool:
        """Whether so little is asked that something put again takes nobody's share of the link."""
        return self._exchanges <= _QUIET

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        with self._places:
            with self._lock:
                self._exchanges += 1
            try:
                yield
            finally:
                with self._lock:
                    self._exchanges -= 1

    def open_ahead(self, connections: int) -> None:
        """Connections that will soon be needed, while something else is waited for."""
        with self._lock:
            wanted = 0 if self._is_open_ahead else connections - len(self._idle)
            self._is_open_ahead = True
        for _ in range(wanted):
            if self._places.acquire(blocking=False):
                Thread(target=self._open, daemon=True, name="open-ahead").start()

    def _open(self) -> None:
        connection = self._peer.connection(self._rate, self._streams)
        connection.set_silence(self._silence_seconds)
        try:
            with suppress(OSError):  # who needs it will be told
                connection.open()
                with self._lock:
                    self._idle.append(connection)
        finally:
            self._places.release()

    def _connection(self) -> PacedConnection:
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        return idle or self._peer.connection(self._rate, self._streams)

    def _put(
        self, question: _Question, connection: PacedConnection, silence_seconds: float
    ) -> PacedConnection:
        try:
            connection.set_silence(silence_seconds)
            connection.begin(question.method, self._peer.path + question.target, question.headers)
            if question.body is not None:
                with suppress(ConnectionError):  # it may have said why before it hung up
                    connection.send_paced(question.body)
        except BaseException:
            connection.close()
            raise
        return connection


def _first_to_answer(asked: Sequence[PacedConnection], seconds: float) -> PacedConnection | None:
    told = select.poll()
    by_descriptor = {connection.fileno(): connection for connection in asked}
    for descriptor in by_descriptor:
        told.register(descriptor, select.POLLIN)
    return next((by_descriptor[descriptor] for descriptor, _ in told.poll(seconds * 1000)), None)


def is_small(body: memoryview) -> bool:
    """So small that putting it again costs less than waiting."""
    return body.nbytes <= _SMALL_BODY_BYTES


def _close_all(connections: Sequence[PacedConnection]) -> None:
    for connection in connections:
        connection.close()
