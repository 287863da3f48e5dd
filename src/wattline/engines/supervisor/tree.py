"""The process tree: who descends from a process, what have they used, and how are they all reached?"""

from __future__ import annotations

import os
import signal
import time

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_SCAN_SHARE = 0.05  # of one CPU: what looking at /proc may cost, however many processes the machine has


class Process:
    """One line of /proc: a process, its parent, and the CPU it and the children it has waited for used."""

    __slots__ = ("cpu_seconds", "parent", "pid")

    def __init__(self, pid: int, stat: bytes) -> None:
        fields = stat[stat.rindex(b")") + 2 :].split()  # the name before it may hold spaces and brackets
        self.pid = pid
        self.parent = int(fields[1])
        self.cpu_seconds = sum(map(int, fields[11:15])) / _TICKS_PER_SECOND


class Tree:
    """All descendants of one process. With a subreaper at the root, a daemon is a descendant too."""

    def __init__(self, root: int) -> None:
        self.root = root
        self._scan_seconds = 0.0

    @property
    def scan_interval_seconds(self) -> float:
        """How long to leave between looks at the tree."""
        return self._scan_seconds / _SCAN_SHARE

    def scan(self) -> list[Process]:
        """The descendants, every parent before its children."""
        began = time.monotonic()
        children: dict[int, list[Process]] = {}
        # In order of pid a parent is mostly read before its children. A child that ends in between is then
        # missed for one scan; the other way round it would count twice, once in its parent's figure.
        names = os.listdir("/proc")  # noqa: PTH208
        for pid in sorted(int(name) for name in names if name.isdigit()):
            stat = _read(f"/proc/{pid}/stat")
            if stat:
                process = Process(pid, stat)
                children.setdefault(process.parent, []).append(process)
        found = list(children.get(self.root, ()))
        for process in found:  # grows while it is walked
            found.extend(children.get(process.pid, ()))
        self._scan_seconds = time.monotonic() - began
        return found

    def signal(self, number: int) -> None:
        """Send one signal to everyone there now."""
        for process in self.scan():
            send_signal(process.pid, number)

    def freeze(self) -> None:
        """Stop everyone, and whoever they started while they were being stopped."""
        stopped: set[int] = set()
        for _ in range(100):  # a process of another user cannot be stopped, and may go on starting others
            running = {process.pid for process in self.scan()} - stopped
            if not running:
                return
            for pid in running:
                send_signal(pid, signal.SIGSTOP)
            stopped |= running

    def signal_listeners(self, number: int) -> int:
        """Signal the first process on every branch that catches it; return how many there were.

        A signal that nobody catches kills. A shell around a script does not catch its checkpoint signal, and
        workers forked by the script inherit its handler without being the one who saves.
        """
        reached: set[int] = set()
        listeners = 0
        for process in self.scan():
            if process.parent in reached:
                reached.add(process.pid)
            elif catches(process.pid, number):
                reached.add(process.pid)
                send_signal(process.pid, number)
                listeners += 1
        return listeners


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def send_signal(pid: int, number: int) -> None:
    """Signal a process that may be gone by now, or may have become another user's."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _read(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # the second: it ends just now
        return b""
    try:
        return os.read(handle, 1 << 14)
    except ProcessLookupError:  # it ended between the two calls
        return b""
    finally:
        os.close(handle)
