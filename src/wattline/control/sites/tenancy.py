"""Tenancy: the agent's side of a lease. What may still run here, and until when?

All times are of one clock that only goes forward. Nothing here is kept over a restart: an agent that starts
holds no lease until it is answered, and what runs goes on until the time that its supervisor was given.
"""

from __future__ import annotations

import math
from dataclasses import replace

from wattline.control.sites.messages import Lease
from wattline.control.sites.timing import Timing


class Tenancy:
    def __init__(self, timing: Timing, number: int, started_at: float) -> None:
        """`number` is the first of this process's requests: above those of all before it. What `timing` says
        holds until a lease says otherwise."""
        self.timing = timing
        self.lease: Lease | None = None
        self._sent_at = -math.inf  # of the request whose answer renewed the lease
        self._answered_at = started_at  # … so that a start without a lease has its grace too
        self._next_number = number
        self._asked: tuple[int, float] | None = None  # the request that may still be answered

    def ask(self, now: float) -> int:
        """Begin a request: only its own answer counts from here on."""
        number, self._next_number = self._next_number, self._next_number + 1
        self._asked = (number, now)
        return number

    def is_answer(self, number: int) -> bool:
        return self._asked is not None and self._asked[0] == number

    def renew(self, lease: Lease) -> None:
        """The answer came; the lease counts from when it was asked for."""
        assert self._asked is not None
        self.lease, self._sent_at = lease, self._asked[1]
        self.timing = replace(
            self.timing,
            lease_seconds=lease.seconds,
            grace_seconds=lease.grace_seconds,
            sync_seconds=lease.sync_seconds,
            supervisor_seconds=lease.supervisor_seconds,
        )
        self._answered_at = self._asked[1]
        self._asked = None

    @property
    def epoch(self) -> int:
        return 0 if self.lease is None else self.lease.epoch

    def ends_at(self) -> float:
        """When what may not go on alone must be gone."""
        return -math.inf if self.lease is None else self._sent_at + self.lease.seconds

    def silent_seconds(self, now: float) -> float:
        return now - self._answered_at

    def is_cut_off(self, now: float) -> bool:
        return self.silent_seconds(now) > self.timing.grace_seconds

    def may_run_until(self, now: float, *, alone: bool) -> float:
        """What an attempt's supervisor is given: `alone` for one that goes on when the site is cut off."""
        until = now + self.timing.supervisor_seconds
        return until if alone else min(until, self.ends_at())
