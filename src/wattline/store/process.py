"""Which process is this, and is that one provably dead?

A pid alone proves nothing: it is reused, and another container has its own numbers. A pid with the ticks
since boot at which its process started is unique within one boot and one pid namespace.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_DEAD_STATES = frozenset("ZXx")  # a zombie runs no code: it only waits to be reaped


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process among all that ever ran on all machines."""

    hostname: str
    boot_id: str
    pid_namespace: str
    pid: int
    started_ticks: int

    def can_see(self, other: ProcessIdentity) -> bool:
        """Whether the other's pid means the same here: same machine, same boot, same pid namespace."""
        return (self.hostname, self.boot_id, self.pid_namespace) == (
            other.hostname,
            other.boot_id,
            other.pid_namespace,
        )

    def __str__(self) -> str:
        parts = (self.hostname, self.boot_id, self.pid_namespace, self.pid, self.started_ticks)
        return " ".join(map(str, parts))

    @staticmethod
    def parse(text: str) -> ProcessIdentity | None:
        """The identity that `str` wrote; None for anything else."""
        parts = text.split(" ")
        if len(parts) != 5 or not (parts[3].isdecimal() and parts[4].isdecimal()):
            return None
        return ProcessIdentity(
            hostname=parts[0],
            boot_id=parts[1],
            pid_namespace=parts[2],
            pid=int(parts[3]),
            started_ticks=int(parts[4]),
        )


def is_alive(process: ProcessIdentity) -> bool:
    """Whether a process can be seen from here and is not gone."""
    return identify_this_process().can_see(process) and not is_provably_dead(process)


def identify_this_process() -> ProcessIdentity:
    pid = os.getpid()
    stat = _read_stat(pid)
    assert stat is not None, "/proc must show this process"
    return ProcessIdentity(
        hostname=socket.gethostname(),
        boot_id=(_PROC / "sys/kernel/random/boot_id").read_text().strip(),
        pid_namespace=str((_PROC / "self/ns/pid").readlink()),
        pid=pid,
        started_ticks=stat[1],
    )


def is_provably_dead(process: ProcessIdentity) -> bool:
    """Whether a process that can be seen from here is gone. A doubt counts as alive."""
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it exists and belongs to another user
    stat = _read_stat(process.pid)
    if stat is None:
        return False  # /proc may hide other users' processes (hidepid), so absence there proves nothing
    state, started_ticks = stat
    return state in _DEAD_STATES or started_ticks != process.started_ticks


def _read_stat(pid: int) -> tuple[str, int] | None:
    """State and start time, the 3rd and 22nd field; the 2nd, the name, may hold spaces and brackets."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])
