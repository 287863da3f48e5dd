"""Control: how does the supervisor hear what is wanted of its attempt, and tell what became of it?

On the same machine over pipes, which are its lease too unless it has a time to live. Elsewhere through the
attempt's folder on a shared file system; there a scheduler owns the supervisor's process, and ends it when
the attempt may not go on, or it has a time to live there too.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from contextlib import suppress

from wattline.engines import leases
from wattline.engines.files import NOTES, USAGE, WANTED, read_bounded, write_document
from wattline.engines.supervisor.lines import Lines

_MOST_NOTES = 200
_UNREAD_SECONDS = 10.0


class Pipes:
    """Commands on standard input, words on standard output."""

    look_seconds = None  # the pipe is readable when there is something to hear
    usage_seconds = 0.25

    def __init__(self, lines: Lines, control_pid: int | None) -> None:
        os.set_blocking(sys.stdout.fileno(), False)
        self._lines = lines
        self._control_pid = control_pid

    @property
    def handle(self) -> int | None:
        return self._lines.handle

    @property
    def is_gone(self) -> bool:
        """The pipe has ended, or its owner has while a fork of it still holds the pipe."""
        return self._lines.ended or os.getppid() != self._control_pid

    def hear(self) -> None:
        self._lines.fill()

    def take(self) -> list[bytes]:
        return self._lines.take()

    def say(self, message: dict[str, object]) -> None:
        """Write one line, or drop it: a control process that does not listen must not hold up the attempt.

        Nothing is lost that matters. Lines are shorter than PIPE_BUF, hence whole or absent, and the
        attempt's end is in `result.json`.
        """
        _write_line(sys.stdout.fileno(), message)


class Leased:
    """A time to live that is renewed over pipes, or by whoever comes through the door later."""

    look_seconds = None
    usage_seconds = 0.25

    def __init__(self, lines: Lines, directory: str, until: float) -> None:
        from wattline.engines.supervisor.door import Door  # sockets take a while to load, and few need them

        os.set_blocking(sys.stdout.fileno(), False)
        self._lines, self._voice, self._until = lines, sys.stdout.fileno(), until
        self.door = Door(directory)

    @property
    def handle(self) -> int | None:
        return None if self._lines.ended else self._lines.handle

    @property
    def is_gone(self) -> bool:
        """The time is over; who renews it may come and go."""
        return leases.now() >= self._until

    def renew(self, until: float) -> None:
        self._until = max(self._until, until)

    def let_in(self) -> bool:
        """Whether somebody else commands from now on."""
        handle = self.door.accept()
        if handle is not None:
            self._lines, self._voice = Lines(handle), handle
        return handle is not None

    def hear(self) -> None:
        try:
            self._lines.fill()
        except BlockingIOError:
            return
        except OSError:  # whoever commanded was killed
            self._lines.ended = True

    def take(self) -> list[bytes]:
        return self._lines.take()

    def say(self, message: dict[str, object]) -> None:
        """As over pipes: written whole, or dropped."""
        _write_line(self._voice, message)


class Folder:
    """`wanted.json` says what should be so, not what to do next: whoever comes late misses nothing."""

    look_seconds = 0.2
    usage_seconds = 1.0
    handle = None

    def __init__(self, directory: str, *, is_leased: bool = False) -> None:
        self._directory = directory
        self._seen: tuple[int, int] | None = None
        self._had: dict[str, object] = {
            "duty": 1.0,
            "frozen": False,
            "checkpoint": 0,
            "pause": False,
            "stop": False,
            "end": False,
            "until": None,
        }
        self._notes = 0
        # Until it can be read how long it lives; a file system that is away must not make that for ever.
        self._ends_at = leases.now() + _UNREAD_SECONDS if is_leased else math.inf

    @property
    def is_gone(self) -> bool:
        """The time that it was given is over."""
        return leases.now() >= self._ends_at

    def hear(self) -> None:
        """Nothing arrives by itself."""

    def take(self) -> list[bytes]:
        """What has to be done for things to be as they are wanted now."""
        try:
            found = os.stat(f"{self._directory}/{WANTED}")  # noqa: PTH116
            if self._seen == (found.st_mtime_ns, found.st_ino):
                return []
            text = read_bounded(self._directory, WANTED)
            wanted = json.loads(text or b"{}")
        except (OSError, ValueError, RecursionError):  # not there yet, or not to be read now: the next look
            return []
        self._seen = (found.st_mtime_ns, found.st_ino)
        if not isinstance(wanted, dict):
            return []
        had, self._had = self._had, self._had | wanted
        if self._had["until"] != had["until"]:
            self._live(wanted.get("until"), wanted.get("seconds"))
        return [json.dumps(command).encode() for command in _differences(had, self._had)]

    def _live(self, until: object, seconds: object) -> None:
        """A calendar that is behind would make it too long, a file that is seen late likewise: the less of
        both counts, from now on by a clock that nobody sets."""
        if isinstance(until, int | float) and isinstance(seconds, int | float):
            self._ends_at = leases.now() + min(until - time.time(), seconds)

    def say(self, message: dict[str, object]) -> None:
        """A full disk costs the word, not the attempt. A start is told by `started.json`."""
        try:
            if message.get("event") == "usage":
                write_document(self._directory, USAGE, message)
            elif message.get("event") == "noted" and self._notes < _MOST_NOTES:
                self._notes += 1
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
                handle = os.open(f"{self._directory}/{NOTES}", flags, 0o644)
                try:
                    os.write(handle, json.dumps(message | {"kind": "note"}).encode() + b"\n")
                finally:
                    os.close(handle)
        except OSError:
            return


Control = Pipes | Leased | Folder


def _write_line(handle: int, message: dict[str, object]) -> None:
    with suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
        os.write(handle, json.dumps(message).encode() + b"\n")


def _differences(had: dict[str, object], wanted: dict[str, object]) -> list[dict[str, object]]:
    changed = {name for name, value in wanted.items() if value != had.get(name)}
    commands: list[dict[str, object]] = []
    if "duty" in changed:
        commands.append({"do": "throttle", "duty": wanted["duty"]})
    if "frozen" in changed:
        commands.append({"do": "freeze" if wanted["frozen"] is True else "thaw"})
    if "pause" in changed and wanted["pause"] is True:
        commands.append({"do": "pause"})
    elif "checkpoint" in changed:
        commands.append({"do": "checkpoint"})
    if "end" in changed and wanted["end"] is True:
        commands.append({"do": "end"})
    elif "stop" in changed and wanted["stop"] is True:
        commands.append({"do": "stop"})
    return commands
