"""A channel: the two ways between a control process and a supervisor, whoever of them opened it."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import IO

from wattline.engines.supervisor.door import door_path

_KNOCK_SECONDS = 5.0


class Channel:
    """Two pipes, or one socket for both; neither end waits for the other."""

    def __init__(self, incoming: IO[bytes] | socket.socket, outgoing: IO[bytes] | socket.socket) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        for end in (incoming, outgoing):
            os.set_blocking(end.fileno(), False)

    @property
    def reader(self) -> int:
        return self._incoming.fileno()

    @property
    def writer(self) -> int | None:
        is_closed = self._outgoing.closed if not isinstance(self._outgoing, socket.socket) else False
        return None if is_closed else self._outgoing.fileno()

    def close_writer(self) -> None:
        self._outgoing.close()

    def close(self) -> None:
        self._outgoing.close()
        self._incoming.close()


def knock(directory: Path) -> Channel | None:
    """Command the supervisor of an attempt from here on; None: there is none that would let anybody in."""
    try:
        place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    guest = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        guest.settimeout(_KNOCK_SECONDS)
        guest.connect(door_path(place))
    except OSError:  # no door, or nobody behind it
        guest.close()
        return None
    finally:
        os.close(place)
    return Channel(guest, guest)
