"""What do attempts print, and how is it read where people ask, though they run at a site elsewhere?

An attempt's output is one file in its folder. An agent hands its own over piece by piece, no faster than
files may go; the control plane keeps them at the same place of its own folder. A piece says where it belongs,
so one that is told twice changes nothing, and the answer says how much is there: after any break both go on
from that.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from wattline.checkpoint import Rate
from wattline.errors import RefusedError, UnavailableError, UsageError
from wattline.live.uplink import Uplink

MOST_PIECE_BYTES = 1 << 16
MOST_LOG_BYTES = (64 << 20) + 4096  # what a supervisor keeps of one attempt, and its word that it stopped
_LOOK_SECONDS = 1.0
_AWAY_SECONDS = 10.0
_REFUSED_SECONDS = 30.0


def read_log(path: Path, offset: int, most_bytes: int) -> bytes:
    """A piece of what was printed; empty where there is none yet."""
    try:
        # Never through a link and never waiting: the script could have put anything in its folder.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UnavailableError(
            f"log {path}: cannot be read: {error.strerror or error}",
            hint="check that this user may read the state folder",
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnavailableError(f"log {path}: this is no longer a file")
        return os.pread(handle, most_bytes, offset)
    finally:
        os.close(handle)


def write_log(path: Path, offset: int, piece: bytes) -> int:
    """Put a piece where it belongs, if all before it is there; how many bytes are there then."""
    if offset + len(piece) > MOST_LOG_BYTES:
        raise UsageError(f"log {path.parent.name}: at most {MOST_LOG_BYTES} bytes, got {offset + len(piece)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path, flags, 0o644)
        try:
            if offset <= os.fstat(handle).st_size:
                os.pwrite(handle, piece, offset)
            return os.fstat(handle).st_size
        finally:
            os.close(handle)
    except OSError as error:
        raise UnavailableError(
            f"log {path}: cannot be written: {error.strerror or error}", hint="see whether there is room"
        ) from error


class Printed:
    """What the attempts of one site print, on its way to the control plane."""

    def __init__(self, site: str, uplink: Uplink, rate_of: Callable[[], Rate | None]) -> None:
        self._site, self._uplink, self._rate_of = site, uplink, rate_of
        self._sent: dict[str, int] = {}
        self._unfinished: dict[str, Path] = {}  # ended, and perhaps not all handed over
        self._refused: dict[str, float] = {}  # until when it is not asked again
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="wattline-printed")
        self._going: Future[None] | None = None
        self._look_at = self._again_at = 0.0

    def remember(self, attempts: Iterable[tuple[str, Path]]) -> None:
        """Some of these may not have been handed over by an earlier process."""
        with self._lock:
            self._unfinished |= dict(attempts)

    def look(self, held: Iterable[tuple[str, Path]]) -> None:
        """In the background: what these have printed since, and what is left of others."""
        now = time.monotonic()
        if (self._going is not None and not self._going.done()) or now < max(self._look_at, self._again_at):
            return
        self._look_at = now + _LOOK_SECONDS
        self._going = self._worker.submit(self._hand_over_all, dict(held))

    def finish(self, attempt: str, path: Path) -> None:
        """All of an attempt that has ended, before its end is told; what cannot be sent now comes later."""
        with self._lock:
            self._unfinished[attempt] = path
            if time.monotonic() >= self._again_at:
                self._hand_over({attempt: path})

    def close(self) -> None:
        """What is left is told by the next process: nobody waits for a long output over a thin link."""
        self._closing.set()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _hand_over_all(self, held: dict[str, Path]) -> None:
        with self._lock:
            self._hand_over({**self._unfinished, **held})
            over = (self._sent.keys() | self._refused.keys()) - held.keys() - self._unfinished.keys()
            for attempt in over:  # asked again, the answer says how much is there
                self._sent.pop(attempt, None)
                self._refused.pop(attempt, None)

    def _hand_over(self, attempts: dict[str, Path]) -> None:
        for attempt, path in attempts.items():
            if time.monotonic() < self._refused.get(attempt, 0.0):
                continue
            try:
                self._send(attempt, path)
            except RefusedError:  # not known there, or of another site by now
                self._refused[attempt] = time.monotonic() + _REFUSED_SECONDS
            except UnavailableError:
                self._again_at = time.monotonic() + _AWAY_SECONDS
                return
            self._unfinished.pop(attempt, None)

    def _send(self, attempt: str, path: Path) -> None:
        if attempt not in self._sent:
            self._sent[attempt] = self._uplink.tell_log(self._site, attempt, 0, b"")
        while piece := b"" if self._closing.is_set() else _readable(path, self._sent[attempt]):
            rate = self._rate_of()
            if rate is not None:
                rate.take(len(piece))
            there = self._uplink.tell_log(self._site, attempt, self._sent[attempt], piece)
            if there <= self._sent[attempt]:
                return
            self._sent[attempt] = there


def _readable(path: Path, offset: int) -> bytes:
    """What a script has made unreadable is nothing to hand over, and keeps nobody from the rest."""
    try:
        return read_log(path, offset, MOST_PIECE_BYTES)
    except UnavailableError:
        return b""
