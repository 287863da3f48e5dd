"""How does an attempt end, and what has it used by then?"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from wattline.enums import plain_members


@plain_members
class Ending(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # its own doing: exit code or signal
    TIMED_OUT = "timed_out"
    PAUSED = "paused"  # saved, then left
    STOPPED = "stopped"
    LOST = "lost"  # the control plane or the node went away; not its own doing
    NOT_STARTED = "not_started"


class Usage(msgspec.Struct, frozen=True):
    """What was used, in the units quotas are written in."""

    gpu_hours: float = 0.0
    usd: float = 0.0
    kwh: float = 0.0
    kg_co2e: float = 0.0

    def plus(self, other: Usage) -> Usage:
        return Usage(
            self.gpu_hours + other.gpu_hours,
            self.usd + other.usd,
            self.kwh + other.kwh,
            self.kg_co2e + other.kg_co2e,
        )
