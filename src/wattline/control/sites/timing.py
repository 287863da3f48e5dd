"""Timing: how long does each side wait before it may believe something of the other?

The agent counts its lease from the moment it *sent* the request that was answered, the hub from the moment it
*answered*: later. Each counts on a clock of its own that only goes forward. If both clocks run within `drift`
of true time, the agent's lease has ended in truth before the hub's wait has. What a clock beyond that bound
could do is kept out by the epoch that checkpoints and results carry.
"""

from __future__ import annotations

from dataclasses import dataclass

from wattline.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    lease_seconds: float = 60.0
    """How long a site holds what it holds without a word from the control plane."""
    grace_seconds: float = 15.0
    """How long it waits for that word before those who may not go on alone save and leave."""
    sync_seconds: float = 3.0
    """How often the agent asks."""
    supervisor_seconds: float = 30.0
    """How long an attempt goes on without its agent."""
    drift: float = 0.01
    """By how much a clock may be faster or slower than true time: a part of it."""
    fence_seconds: float = 5.0
    """How long it may take to kill what has no lease any more."""
    skew_seconds: float = 60.0
    """How far an agent's calendar may be from the hub's: beyond it, no time it tells means anything."""

    def __post_init__(self) -> None:
        if not 0.0 < self.sync_seconds < self.grace_seconds < self.lease_seconds:
            raise UsageError(
                f"timing: sync {self.sync_seconds} s, grace {self.grace_seconds} s and lease "
                f"{self.lease_seconds} s must each be longer than the one before",
                hint="such as 3, 15 and 60",
            )
        if not 0.0 <= self.drift < 0.5:
            raise UsageError(f"timing: drift is a part of true time from 0 to 0.5, got {self.drift}")

    @property
    def surely_over_seconds(self) -> float:
        """On the hub's clock, from its last answer: then nothing lives on that lease any more."""
        return self.lease_seconds * (1.0 + self.drift) / (1.0 - self.drift) + self.fence_seconds
