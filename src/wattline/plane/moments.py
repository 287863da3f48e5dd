"""How is a moment written: for programs, and for people here?"""

from __future__ import annotations

import time
from datetime import UTC, datetime


def iso(at: float | None) -> str | None:
    """A moment as programs read it."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(at: float) -> str:
    """A moment as people here read it: the hour, and the day unless it is today."""
    there, now = time.localtime(at), time.localtime()
    day = "" if there[:3] == now[:3] else time.strftime("%m-%d ", there)
    return day + time.strftime("%H:%M:%S", there)
