"""Warden: runs one command under limits, and leaves nothing of it behind.

Started by its path, with the standard library alone. The order is one line of JSON on standard input, which
stays open as long as somebody waits for the answer; the answer is one line of JSON on standard output.
Everything that the command starts becomes a child of this process when its own parent ends, so it is found
and ended here; as process 1 of a namespace the kernel does that too.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from typing import Any, Never

_TICK_SECONDS = 0.05
_SAMPLE_SECONDS = 0.5
_BUSY_SHARE = 0.05  # of one processor
_DUMP_SECONDS = 2.0
_END_SECONDS = 10.0
_HEAD_BYTES, _TAIL_BYTES = 16 << 10, 64 << 10
_PR_SET_CHILD_SUBREAPER = 36
_TICKS = os.sysconf("SC_CLK_TCK")


class Output:
    """The beginning and the end of what was said."""

    def __init__(self) -> None:
        self.head, self.tail = b"", b""

    def add(self, said: bytes) -> None:
        room = _HEAD_BYTES - len(self.head)
        self.head += said[:room]
        self.tail = (self.tail + said[max(0, room) :])[-_TAIL_BYTES:]

    def text(self) -> str:
        return (self.head + self.tail).decode("utf-8", "replace")


def main() -> None:
    order = json.loads(sys.stdin.buffer.readline())
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if order["own_network"]:
        _raise_loopback()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _become(order, writer)
    os.close(writer)
    os.set_blocking(reader, False)
    answer = _watch(child, reader, order)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)


def _become(order: dict[str, Any], writer: int) -> Never:
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (writer, 1), (writer, 2)):
            os.dup2(source, target)
        os.closerange(3, 256)
        for name, limit in order["limits"].items():
            kind = getattr(resource, name)
            hard = resource.getrlimit(kind)[1]
            most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (most, most))
        os.nice(10)  # the warden comes first, however many they become
        os.chdir(order["folder"])
        os.execve("/bin/sh", ["sh", "-c", order["command"]], order["environment"])  # noqa: S606
    finally:
        os._exit(127)


def _watch(child: int, reader: int, order: dict[str, Any]) -> dict[str, Any]:
    started = busy_at = sampled_at = time.monotonic()
    cpu_seconds, status, why = 0.0, 0, ""
    output = Output()
    while not why:
        readable, _, _ = select.select([reader, 0], [], [], _TICK_SECONDS)
        _drain(reader, output)
        if 0 in readable and not os.read(0, 4096):
            why = "abandoned"
        if (ended := _reap(child)) is not None:
            status, why = ended, "ended"
        now = time.monotonic()
        if not why and now - started > order["within_seconds"]:
            why = "time"
        family = _family()
        if len(family) > order["most_processes"]:
            why = "processes"
        if now - sampled_at >= _SAMPLE_SECONDS:
            used_seconds = _cpu_seconds(family)
            if used_seconds - cpu_seconds > _BUSY_SHARE * (now - sampled_at):
                busy_at = now
            cpu_seconds, sampled_at = used_seconds, now
    seconds = time.monotonic() - started
    idle_seconds = time.monotonic() - busy_at
    if why == "time":
        _dump(reader, output)
    _end_all()
    _drain(reader, output)
    return {
        "why": why,
        "exit": os.waitstatus_to_exitcode(status),
        "seconds": seconds,
        "idle_seconds": idle_seconds,
        "output": output.text(),
    }


def _drain(reader: int, output: Output) -> None:
    with suppress(BlockingIOError):
        while said := os.read(reader, 1 << 16):
            output.add(said)


def _reap(child: int) -> int | None:
    """The child's status once it has ended; whatever else has ended is taken away too."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == child:
            found = status


def _family() -> dict[int, float]:
    """Everything below this process, with the CPU seconds each has used."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - hundreds, twenty times a second
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # it has just ended
            parents[int(name)] = int(fields[1])
            used[int(name)] = (int(fields[11]) + int(fields[12])) / _TICKS
    below: set[int] = set()
    layer = {os.getpid()}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        below |= layer
    return {pid: used[pid] for pid in below}


def _cpu_seconds(family: dict[int, float]) -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(family.values()) + ended.ru_utime + ended.ru_stime


def _dump(reader: int, output: Output) -> None:
    """Python with its fault handler on answers SIGABRT by saying where every thread is."""
    for pid in sorted(_family()):
        _kill(pid, signal.SIGABRT)
    until = time.monotonic() + _DUMP_SECONDS
    while time.monotonic() < until and _family():
        select.select([reader], [], [], _TICK_SECONDS)
        _drain(reader, output)
        _reap(0)
        time.sleep(_TICK_SECONDS / 5)


def _end_all() -> None:
    if os.getpid() == 1:
        _kill(-1, signal.SIGKILL)  # all of the namespace at once, but this process
    until = time.monotonic() + _END_SECONDS  # what waits for a device cannot be ended
    while (family := _family()) and time.monotonic() < until:
        for one in (signal.SIGSTOP, signal.SIGKILL):  # what is stopped starts no more
            for pid in family:
                _kill(pid, one)
        _reap(0)
        time.sleep(0.005)


def _kill(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _raise_loopback() -> None:
    """A new network namespace has its loopback down, and training talks to itself through it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS


if __name__ == "__main__":
    main()
