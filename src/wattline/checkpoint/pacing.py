"""Pacing: how do several threads share so many bytes per second, and no more in any second?"""

from __future__ import annotations

import fcntl
import random
import select
import socket
import struct
import sys
import termios
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Condition, Lock
from typing import TYPE_CHECKING

from wattline.errors import UsageError

if TYPE_CHECKING:  # a training script that only saves need not wait for it
    from http.client import HTTPConnection

# What was not used is kept for so long, so no second has more than 2 % too much, and what the system holds
# back for a moment stays below 5 %. A piece is less than that, and at 1.2 MB/s more than a part: parts that
# wait for tokens halfway would all be lost on a cut.
_KEPT_SECONDS = 0.02
_PIECE_SECONDS = 0.015
_MOST_PIECE_BYTES = 2**16
_MOST_ANSWER_BYTES = 2**28
_BETWEEN_BYTES = 40  # version, host and line ends of a request
_TCP_RTO_MAX_MS = 44  # Linux 6.15; Python has no name for it yet
_TCP_NOTSENT_LOWAT = 25
_UNSENT_BYTES = 2**15
_LEAST_BUFFER_BYTES = 2**16
_BUFFERED_SECONDS = 0.5
_FIRST_TRY_SECONDS, _LONGER = 0.2, 1.5


class Rate:
    """A token bucket. Who waits is served in turn, one small piece at a time, so nobody is starved."""

    def __init__(self, bytes_per_second: float) -> None:
        self._lock = Lock()
        self._waiting: deque[Condition] = deque()
        self._bytes_per_second = _checked(bytes_per_second)
        self._level_bytes = 0.0
        self._settled_at = time.monotonic()

    @property
    def bytes_per_second(self) -> float:
        return self._bytes_per_second

    @property
    def piece_bytes(self) -> int:
        """What is worth taking at once."""
        return max(1, min(_MOST_PIECE_BYTES, int(self._bytes_per_second * _PIECE_SECONDS)))

    def change(self, bytes_per_second: float) -> None:
        """From now on; those who wait are told."""
        checked = _checked(bytes_per_second)
        with self._lock:
            self._settle()
            self._bytes_per_second = checked
            self._level_bytes = min(self._level_bytes, checked * _KEPT_SECONDS)
            self._wake_first()

    def take(self, size_bytes: int) -> None:
        """Returns when so many bytes may go."""
        while size_bytes > 0:
            piece_bytes = min(size_bytes, self.piece_bytes)
            self._take_piece(piece_bytes)
            size_bytes -= piece_bytes

    def give_back(self, size_bytes: int) -> None:
        """Bytes that were taken and did not go."""
        with self._lock:
            self._level_bytes += size_bytes
            self._wake_first()

    def owe(self, size_bytes: int) -> None:
        """Bytes that go now although they were taken long ago: later ones wait for them."""
        with self._lock:
            self._settle()
            self._level_bytes -= size_bytes

    def pieces(self, data: memoryview) -> Iterator[memoryview]:
        """The data, piece by piece, each when it may go."""
        start = 0
        while start < len(data):
            piece = data[start : start + self.piece_bytes]
            self._take_piece(len(piece))
            yield piece
            start += len(piece)

    def _take_piece(self, size_bytes: int) -> None:
        mine = Condition(self._lock)
        with self._lock:
            self._waiting.append(mine)
            try:
                while self._waiting[0] is not mine:
                    mine.wait()
                while (seconds := self._seconds_until(size_bytes)) > 0:
                    mine.wait(seconds)
                self._level_bytes -= size_bytes
            finally:
                self._waiting.remove(mine)
                self._wake_first()

    def _seconds_until(self, size_bytes: int) -> float:
        self._settle()
        # A piece may be more than is ever kept: the rate was higher when it was cut.
        wanted_bytes = min(size_bytes, self._bytes_per_second * _KEPT_SECONDS)
        return (wanted_bytes - self._level_bytes) / self._bytes_per_second

    def _settle(self) -> None:
        now = time.monotonic()
        earned_bytes = (now - self._settled_at) * self._bytes_per_second
        most_bytes = max(self._level_bytes, self._bytes_per_second * _KEPT_SECONDS)
        self._level_bytes = min(self._level_bytes + earned_bytes, most_bytes)
        self._settled_at = now

    def _wake_first(self) -> None:
        if self._waiting:
            self._waiting[0].notify()


@dataclass(frozen=True, slots=True)
class Answer:
    """Of a server."""

    status: int
    body: bytes = b""

    @property
    def why(self) -> str:
        text = self.body[:200].decode("ascii", "replace")
        return "".join(character if character.isprintable() else "?" for character in text)


class PacedConnection:
    """An HTTP connection, one of `streams`, that sends no faster than the rate lets it.

    What the operating system holds back is kept small: on a cut that much was sent in vain.
    """

    def __init__(self, http: HTTPConnection, rate: Rate | None, streams: int) -> None:
        self._http, self._rate, self._streams, self._silence_seconds = http, rate, streams, 0.0

    def set_silence(self, seconds: float) -> None:
        self._silence_seconds = seconds
        if self._http.sock is not None:
            self._http.sock.settimeout(seconds)

    def fileno(self) -> int:
        return int(self._http.sock.fileno())

    def waiting_bytes(self) -> int:
        """Sent, and not known to have arrived; 0 where the operating system cannot tell."""
        with suppress(OSError):
            told = fcntl.ioctl(self._http.sock, termios.TIOCOUTQ, bytes(4))
            return int.from_bytes(told, sys.byteorder)
        return 0

    def open(self) -> None:
        if self._http.sock is None:
            self._connect()
            self._prepare()

    def begin(self, method: str, target: str, headers: Mapping[str, str]) -> None:
        self.open()
        if self._rate is not None:
            fields_bytes = sum(len(name) + len(value) + 4 for name, value in headers.items())
            self._rate.take(len(method) + len(target) + fields_bytes + _BETWEEN_BYTES)
        self._http.putrequest(method, target, skip_accept_encoding=True)
        for name, value in headers.items():
            self._http.putheader(name, value)
        self._http.endheaders()

    def send_paced(self, data: memoryview | bytes) -> None:
        sock, rate, left = self._http.sock, self._rate, memoryview(data).cast("B")
        if rate is None:
            sock.sendall(left)
            return
        room = select.poll()
        room.register(sock, select.POLLOUT)
        while left:
            # Tokens that wait for room in a socket would all be spent in the same second, when a cut ends.
            if not room.poll((sock.gettimeout() or 0.0) * 1000):
                raise TimeoutError("nothing could be sent")
            piece = left[: rate.piece_bytes]
            rate.take(len(piece))
            sent_bytes = sock.send(piece)
            rate.give_back(len(piece) - sent_bytes)
            left = left[sent_bytes:]

    def answer(self) -> Answer:
        response = self._http.getresponse()
        body = response.read(_MOST_ANSWER_BYTES)
        # With a limit, http.client takes an answer that breaks off for one that is complete.
        if response.length or (response.length is None and not response.chunked):
            self.close()
            raise OSError("the answer broke off")
        return Answer(response.status, body)

    def close(self) -> None:
        self._http.close()

    def _connect(self) -> None:
        """In tries that take ever longer: a first packet that is lost goes again after a second by itself."""
        try_seconds, gives_up_at = _FIRST_TRY_SECONDS, time.monotonic() + self._silence_seconds
        while self._http.sock is None:
            left_seconds = max(_FIRST_TRY_SECONDS, gives_up_at - time.monotonic())
            self._http.timeout = min(try_seconds, left_seconds)
            try:
                self._http.connect()
            except OSError as error:
                self._http.close()
                if not isinstance(error, TimeoutError) or time.monotonic() >= gives_up_at:
                    raise
                try_seconds *= _LONGER * random.uniform(0.8, 1.2)  # noqa: S311 - so that streams come apart
        self._http.sock.settimeout(self._silence_seconds)

    def _prepare(self) -> None:
        tune(self._http.sock)
        # When this process dies, what it had not sent dies too: the next one has the rate to itself.
        self._http.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self._rate is not None:
            share_bytes = self._rate.bytes_per_second * _BUFFERED_SECONDS / self._streams
            size_bytes = max(_LEAST_BUFFER_BYTES, int(share_bytes))
            self._http.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size_bytes)


def tune(sock: socket.socket) -> None:
    """For a link that loses packets and breaks; what the operating system does not know is left out."""
    tcp = socket.IPPROTO_TCP
    options: tuple[tuple[int, int, int | bytes], ...] = (
        (tcp, socket.TCP_CONGESTION, b"bbr"),  # takes a lost packet for chance, not for a full queue
        (tcp, _TCP_NOTSENT_LOWAT, _UNSENT_BYTES),
        (tcp, _TCP_RTO_MAX_MS, 1000),  # after a cut it is tried every second, not ever more rarely
        (tcp, socket.TCP_USER_TIMEOUT, 20_000),
        (tcp, socket.TCP_KEEPIDLE, 10),
        (tcp, socket.TCP_KEEPINTVL, 5),
        (tcp, socket.TCP_KEEPCNT, 3),
        (tcp, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    )
    for level, option, value in options:
        with suppress(OSError):
            sock.setsockopt(level, option, value)


def _checked(bytes_per_second: float) -> float:
    if not 0 < bytes_per_second < float("inf"):
        raise UsageError(
            f"{bytes_per_second} bytes per second is no rate", hint="a rate is more than nothing and finite"
        )
    return float(bytes_per_second)
