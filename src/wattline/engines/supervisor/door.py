"""The door: how does a control process that was not there at the start command a supervisor?

Whoever connects last is heard; the one before is not listened to any more.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from wattline.engines.files import DOOR


class Door:
    """A socket in the attempt's directory, by the directory's own handle: its path may be longer than a
    socket's name."""

    def __init__(self, directory: str) -> None:
        self._place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._path = door_path(self._place)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        with suppress(FileNotFoundError):
            os.unlink(DOOR, dir_fd=self._place)
        self._listener.bind(self._path)
        os.chmod(self._path, 0o600)  # noqa: PTH101  pathlib takes a quarter of the time to start
        self._listener.listen(4)
        self._guest: socket.socket | None = None

    @property
    def handle(self) -> int:
        return self._listener.fileno()

    def accept(self) -> int | None:
        """The handle of whoever came; None if they have gone again."""
        try:
            guest, _ = self._listener.accept()
        except OSError:
            return None
        guest.setblocking(False)
        self._guest = guest  # the one before is closed with its last reference
        return guest.fileno()


def door_path(place: int) -> str:
    return f"/proc/self/fd/{place}/{DOOR}"
