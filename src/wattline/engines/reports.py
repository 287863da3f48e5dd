"""Reports: what has the training said since the last look? It is another program: every size is bounded."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

LINE_LIMIT_BYTES = 64 << 10
READ_LIMIT_BYTES = 256 << 10
"""What one look takes; the rest waits for the next one."""
TOTAL_LIMIT_BYTES = 64 << 20


class ReportTail:
    """Follows one `reports.jsonl`, line by whole line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._partial = b""
        self._overlong = False
        self._faults = 0
        self._note: str | None = None

    def read(self) -> tuple[list[dict[str, object]], bool]:
        """The reports since the last call, and whether there may be more already."""
        data = self._next_bytes()
        self._offset += len(data)
        *whole, self._partial = (self._partial + data).split(b"\n")
        reports = [report for line in whole if (report := self._parse(line)) is not None]
        if len(self._partial) > LINE_LIMIT_BYTES:
            self._overlong = True
            self._partial = b""
        return reports, len(data) == READ_LIMIT_BYTES

    def take_note(self) -> str | None:
        """The first fault found, once: a script that prints rubbish would drown everything else."""
        note, self._note = self._note, None
        return note

    def _next_bytes(self) -> bytes:
        if self._offset >= TOTAL_LIMIT_BYTES:
            self._fault(f"{self._path.name}: only the first {TOTAL_LIMIT_BYTES} bytes are read")
            return b""
        try:
            # Neither a link nor a pipe that the script put there may lead us elsewhere or hold us up.
            handle = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return b""
        except OSError as error:
            self._fault(f"{self._path.name}: {error.strerror}")
            return b""
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                self._fault(f"{self._path.name}: not a regular file")
                return b""
            return os.pread(handle, READ_LIMIT_BYTES, self._offset)
        finally:
            os.close(handle)

    def _parse(self, line: bytes) -> dict[str, object] | None:
        if self._overlong or len(line) > LINE_LIMIT_BYTES:
            self._overlong = False
            self._fault(f"{self._path.name}: a line longer than {LINE_LIMIT_BYTES} bytes is ignored")
            return None
        if not line.strip():
            return None
        try:
            report = json.loads(line)
        except (ValueError, RecursionError):
            report = None
        if isinstance(report, dict) and isinstance(report.get("kind"), str):
            return report
        self._fault(f'{self._path.name}: not an object with a text "kind", ignored: {line[:80]!r}')
        return None

    def _fault(self, message: str) -> None:
        self._faults += 1
        if self._faults == 1:
            self._note = f"{message}; further faults are counted, not told"
