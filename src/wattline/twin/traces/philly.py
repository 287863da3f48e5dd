"""Philly and Sia: `timestamp,duration,num_gpus,gpu_time,cluster`, a date, seconds, and a virtual cluster.

Jobs have no names, and two alike are two jobs: they are named by their lines.
"""

from __future__ import annotations

from collections.abc import Callable

from wattline.twin.traces.flaws import count_of, number_of, split_row, time_of
from wattline.twin.traces.gathering import Gathering
from wattline.twin.traces.header import Header

PHILLY_COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


def philly_rows(header: Header, gathering: Gathering) -> Callable[[int, str], None]:
    """How one line is taken. `gpu_time` is duration times GPUs, and nothing needs it."""
    at, duration, gpus = header.require(PHILLY_COLUMNS, ("timestamp",), ("duration",), ("num_gpus",))
    cluster = header.find("cluster")
    width = header.width
    take = gathering.take

    def take_row(line: int, text: str) -> None:
        fields = split_row(text, width)
        take(
            line,
            time_of("timestamp", fields[at]),
            count_of("num_gpus", fields[gpus]),
            number_of("duration", fields[duration]),
            "default" if cluster is None else fields[cluster].strip() or "default",
        )

    return take_row
