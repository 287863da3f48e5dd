"""Lines over a pipe: what was said so far, and has the other end gone?"""

from __future__ import annotations

import os

LINE_LIMIT_BYTES = 8 << 20  # the first line carries a whole environment; the kernel takes about 2 MiB of it


class Lines:
    """Complete lines as they arrive; a partial last line waits for its end."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.ended = False
        self._partial = b""

    def first(self) -> bytes | None:
        """Wait for one line; None when the other end went away before it was whole."""
        while b"\n" not in self._partial:
            self.fill()
            if self.ended:
                return None
        line, _, self._partial = self._partial.partition(b"\n")
        return line

    def fill(self) -> None:
        """Read once; blocks only when nothing is there."""
        data = os.read(self.handle, 1 << 16)
        self.ended = not data
        if len(self._partial) > LINE_LIMIT_BYTES:
            self._partial = b""  # what is left of such a line will be no command
        self._partial += data

    def take(self) -> list[bytes]:
        """Every line that is whole by now."""
        *whole, self._partial = self._partial.split(b"\n")
        return whole
