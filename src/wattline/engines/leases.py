"""Leases: on which clock does an attempt's time to live end?

One that goes on over a suspend of the machine and over a restart of every process, and never jumps. Whoever
sets the time and whoever ends the attempt read the same one: they are on one machine.
"""

from __future__ import annotations

import time


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
