"""Throttling: how is a tree held to a share of the time it could run?"""

from __future__ import annotations

import os
import signal
import time
from math import inf

from wattline.engines.supervisor.tree import Tree

_PERIOD_SECONDS = 0.1
_KERNEL_MINIMUM_MICROSECONDS = 1000


class Throttle:
    """A share of time. `next_at` says when, in monotonic time, it wants its next `tick`."""

    name = "none"
    next_at = inf

    def admit(self, pid: int) -> None:
        """Take in the command's process before it executes."""

    def set_duty(self, duty: float) -> None:
        """Let the tree run this share of the time, from now on."""

    def tick(self, now: float) -> None:
        """Do what is due."""

    def remove(self) -> None:
        """Leave nothing behind."""


class DutyCycle(Throttle):
    """Stop and continue the tree ten times a second: needs no rights at all."""

    name = "duty-cycle"

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._duty = 1.0
        self._stopped = False

    def set_duty(self, duty: float) -> None:
        self._duty = duty
        self.next_at = time.monotonic()

    def tick(self, now: float) -> None:
        if now < self.next_at:
            return
        period_seconds = max(_PERIOD_SECONDS, self._tree.scan_interval_seconds)
        if self._stopped or self._duty >= 1.0:
            self._tree.signal(signal.SIGCONT)
            self._stopped = False
            self.next_at = now + self._duty * period_seconds if self._duty < 1.0 else inf
        else:
            self._tree.signal(signal.SIGSTOP)
            self._stopped = True
            self.next_at = now + (1.0 - self._duty) * period_seconds


class Cgroup(Throttle):
    """A CPU quota kept by the kernel, in a cgroup made for this attempt alone."""

    def __init__(self, directory: str, cpus: float) -> None:
        self._directory = directory
        self._cpus = cpus
        self._version_2 = os.access(f"{directory}/cpu.max", os.F_OK)
        self.name = "cgroup-v2" if self._version_2 else "cgroup-v1"

    def admit(self, pid: int) -> None:
        self._write("cgroup.procs", str(pid))

    def set_duty(self, duty: float) -> None:
        period = int(_PERIOD_SECONDS * 1e6)
        quota = max(_KERNEL_MINIMUM_MICROSECONDS, int(duty * self._cpus * period))
        if self._version_2:
            self._write("cpu.max", f"{quota} {period}" if duty < 1.0 else f"max {period}")
        else:
            self._write("cpu.cfs_period_us", str(period))
            self._write("cpu.cfs_quota_us", str(quota) if duty < 1.0 else "-1")

    def remove(self) -> None:
        for _ in range(100):
            try:
                return os.rmdir(self._directory)  # noqa: PTH106
            except FileNotFoundError:  # swept already by a control process that took over
                return None
            except OSError:  # the kernel lets go of the dead a moment after they were reaped
                time.sleep(0.01)
        raise TimeoutError(f"{self._directory} is still in use")

    def _write(self, name: str, text: str) -> None:
        handle = os.open(f"{self._directory}/{name}", os.O_WRONLY)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)
