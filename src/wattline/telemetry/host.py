"""Host: how busy are this machine's CPUs and how full is its memory?"""

from __future__ import annotations

import psutil

from wattline.telemetry.reading import Reading


class HostMeter:
    """Reads one host. The CPU share is over the time since the last look, so the first look has none."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._before: tuple[float, float] | None = None

    def readings(self, at: float) -> list[Reading]:
        memory = psutil.virtual_memory()
        values = {
            "memory_total_bytes": float(memory.total),
            "memory_used_bytes": float(memory.total - memory.available),
        }
        busy_seconds, total_seconds = _cpu_seconds()
        if self._before is not None and total_seconds > self._before[1]:
            share = (busy_seconds - self._before[0]) / (total_seconds - self._before[1])
            values["cpu_busy_fraction"] = min(1.0, max(0.0, share))
        self._before = busy_seconds, total_seconds
        return [Reading(self._node, quantity, value, at, "host") for quantity, value in values.items()]


def _cpu_seconds() -> tuple[float, float]:
    """Busy and total seconds of all CPUs since boot; waiting for a disk is not work."""
    times = psutil.cpu_times()
    total_seconds = times.user + times.nice + times.system + times.idle + times.iowait
    return total_seconds - times.idle - times.iowait, total_seconds
