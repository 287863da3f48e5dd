"""Mailbox: what does the control plane want of this attempt, and what does it hear back?

`desired.json` is replaced atomically by the supervisor; `reports.jsonl` is only ever appended to, one whole
line in one write, so either side may die at any moment and the other still reads sense.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wattline.train.errors import ScriptError

_MAX_DESIRED_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """What the control plane wants now; `checkpoint` counts the saves it has asked for so far."""

    serial: int = 0
    in_flight: float = 1.0
    checkpoint: int = 0
    pause: bool = False


class Mailbox:
    """The attempt's directory, or nothing at all when nobody watches."""

    def __init__(self, attempt: Path | None) -> None:
        self.desired = Desired()
        self._seen: tuple[int, int, int] | None = None
        self._desired_path = attempt / "desired.json" if attempt else None
        self._reports = None if attempt is None else _open_reports(attempt)

    def poll(self) -> Desired:
        """One stat when nothing has changed; a document that makes no sense changes nothing."""
        if self._desired_path is None:
            return self.desired
        try:
            status = self._desired_path.stat()
        except FileNotFoundError:
            return self.desired
        seen = (status.st_mtime_ns, status.st_ino, status.st_size)
        if seen != self._seen:
            self._seen = seen
            try:
                with self._desired_path.open("rb") as file:
                    self.desired = _read_desired(file.read(_MAX_DESIRED_BYTES))
            except (OSError, ValueError) as error:
                warnings.warn(f"{self._desired_path}: ignored: {error}", RuntimeWarning, stacklevel=2)
        return self.desired

    def report(self, kind: str, **fields: Any) -> None:
        """Tell the control plane; a full disk may cost a report but not the training."""
        if self._reports is None:
            return
        line = json.dumps({"kind": kind, **fields}, allow_nan=False, separators=(",", ":")) + "\n"
        try:
            os.write(self._reports, line.encode())
        except OSError as error:
            warnings.warn(f"a report could not be written: {error}", RuntimeWarning, stacklevel=2)

    def close(self) -> None:
        """Let go of the reports file; later reports go nowhere."""
        if self._reports is not None:
            os.close(self._reports)
            self._reports = None


def _open_reports(attempt: Path) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(attempt / "reports.jsonl", flags, 0o666)
    except OSError as error:
        raise ScriptError(
            f"WATTLINE_ATTEMPT is {attempt}: {error.strerror}",
            hint="name a directory that exists, or unset it to run without a control plane",
        ) from error


def _read_desired(raw: bytes) -> Desired:
    try:
        document = json.loads(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(document, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the document is wrong, not the program
    desired = Desired(
        serial=document.get("serial", 0),
        in_flight=document.get("in_flight", 1.0),
        checkpoint=document.get("checkpoint", 0),
        pause=document.get("pause", False),
    )
    for name in ("serial", "checkpoint"):
        if type(getattr(desired, name)) is not int:
            raise ValueError(f"{name} is not a whole number")
    if type(desired.in_flight) not in (int, float) or not 0 < desired.in_flight <= 1:
        raise ValueError("in_flight is not a fraction above 0 and up to 1")
    if type(desired.pause) is not bool:
        raise ValueError("pause is neither true nor false")
    return desired
