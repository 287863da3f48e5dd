"""Direct: how do many bytes get to a disk soon, and without pushing out what others keep in memory?

They are gathered in one of a few buffers while others are written past the system's cache (`O_DIRECT`), where
the file system can. The cache would have to find pages for all of them first, and a sync at the end would
wait for all of them; here little is left to wait for.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from wattline.checkpoint.tensors import Array

_BUFFERS = 4  # so that the disk need not wait where bytes come unevenly
_BUFFER_BYTES = 4 * 2**20  # a multiple of any disk's blocks; memory for it is aligned to pages


class DirectWriter:
    """Writes an open file from its first byte to its last; what goes wrong is told by `write` or `sync`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._filling = _make_buffer()
        self._filled_bytes = 0
        self._has_begun = self._is_direct = False
        self._behind = ThreadPoolExecutor(1, thread_name_prefix="disk")  # starts its thread when needed
        self._on_their_way: deque[tuple[Future[None], Array]] = deque()

    def write(self, data: memoryview) -> None:
        """Take all of it; what was taken is on its way once a buffer is full."""
        left = np.frombuffer(data, np.uint8) if data.nbytes else _NOTHING
        while left.size:
            room = self._filling[self._filled_bytes :]
            taken = min(left.size, room.size)
            np.copyto(room[:taken], left[:taken])
            self._filled_bytes += taken
            left = left[taken:]
            if self._filled_bytes == _BUFFER_BYTES:
                self._pass_on()

    def sync(self) -> None:
        """Return when all that was written survives a power cut."""
        while self._on_their_way:
            self._wait_for_first()
        self._set_direct(wanted=False)  # the rest is no multiple of a block
        self._write_all(self._filling[: self._filled_bytes])
        self._filled_bytes = 0
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Before the descriptor is closed: a write on its way would go to whatever has the number next."""
        self._behind.shutdown()

    def _pass_on(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._set_direct(wanted=True)
        self._on_their_way.append((self._behind.submit(self._write_all, self._filling), self._filling))
        room_left = len(self._on_their_way) < _BUFFERS
        self._filling = _make_buffer() if room_left else self._wait_for_first()
        self._filled_bytes = 0

    def _wait_for_first(self) -> Array:
        """The buffer that is free then. One that failed stays first: nothing after it counts."""
        writing, buffer = self._on_their_way[0]
        writing.result()
        self._on_their_way.popleft()
        return buffer

    def _write_all(self, buffer: Array) -> None:
        left = buffer.data
        while left:  # the operating system may take less than it was given
            try:
                left = left[os.write(self._descriptor, left) :]
            except OSError as error:
                if not self._is_direct or error.errno != errno.EINVAL:
                    raise
                self._set_direct(wanted=False)  # a file system that has no such thing says so only now

    def _set_direct(self, *, wanted: bool) -> None:
        if wanted == self._is_direct:
            return
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags ^ os.O_DIRECT)
            self._is_direct = wanted
        except OSError:
            if not wanted:
                raise


_NOTHING: Array = np.empty(0, np.uint8)


def _make_buffer() -> Array:
    return np.frombuffer(mmap.mmap(-1, _BUFFER_BYTES), np.uint8)
