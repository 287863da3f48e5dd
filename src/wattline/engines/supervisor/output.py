"""Output: how is what the command prints kept without ever holding it up?"""

from __future__ import annotations

import os

_CHUNK_BYTES = 1 << 16


class Output:
    """A pipe for the command to write to, pumped into a log of bounded size."""

    def __init__(self, path: str, limit_bytes: int) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        self._log = os.open(path, flags, 0o644)
        self._limit_bytes = limit_bytes
        self._left_bytes = limit_bytes

    def pump(self) -> bool:
        """Move what is there; False once every writer has gone."""
        try:
            data = os.read(self.reader, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        if self._left_bytes > 0:
            self._keep(data)
        return bool(data)

    def drain(self) -> None:
        """Take what the dead left in the pipe; one pipe holds no more than a megabyte."""
        for _ in range((1 << 20) // _CHUNK_BYTES):
            if not self.pump():
                return

    def _keep(self, data: bytes) -> None:
        try:
            write_all(self._log, data[: self._left_bytes])
            self._left_bytes -= len(data)
            if self._left_bytes < 0:
                notice = (
                    f"\n[wattline: output is limited to {self._limit_bytes} bytes; the rest is dropped]\n"
                )
                write_all(self._log, notice.encode())
        except OSError:  # a full disk ends the log, not the command
            self._left_bytes = 0


def write_all(handle: int, data: bytes) -> None:
    """Write every byte: one call may take only some of them."""
    while data:
        data = data[os.write(handle, data) :]
