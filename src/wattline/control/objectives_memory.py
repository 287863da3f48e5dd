"""What must objectives remember, to go on counting where they stopped?"""

from __future__ import annotations

import msgspec

from wattline.control.objectives_tally import Cell
from wattline.control.objectives_timing import Clock


class Open(msgspec.Struct):
    """What is remembered of a job that has not ended."""

    ended_attempt: int = 0
    saved_at: float | None = None
    interval_seconds: float | None = None  # between its last two checkpoints
    stretch_at: float | None = None  # since when it runs as it does
    is_slowed: bool = False
    counted_by: tuple[int, ...] = ()  # SLOs that count this stretch
    adjusting: list[str] = msgspec.field(default_factory=list)  # actions on it in flight


class Memory(msgspec.Struct, kw_only=True):
    """All that has to be known to go on counting after some step."""

    cells: list[dict[int, Cell]]
    clocks: list[Clock]
    open: dict[str, Open]
    followers: dict[str, list[str]]
    adjusting: dict[str, str]
    judged: dict[str, float]
    current: dict[str, float]
    metered: set[int]
    over: set[int]
    seen_at: float | None


def nothing_seen(slos: int) -> Memory:
    return Memory(
        cells=[{} for _ in range(slos)],
        clocks=[],
        open={},
        followers={},
        adjusting={},
        judged={},
        current={},
        metered=set(),
        over=set(),
        seen_at=None,
    )
