"""Tally: what became of the jobs of a replay, and of the GPU-hours they held?

Waits and utilisation are counted while jobs still arrive: what a queue that nobody joins any more drains into
says nothing about the facility.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

from wattline.twin.attempts import Losses


@dataclass(slots=True, eq=False)
class Tally:
    """Counters; the world keeps them up to date."""

    submitted: int = 0
    completed: int = 0
    failed: int = 0
    waiting: int = 0
    running: int = 0
    refusals: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # by rule
    started: int = 0
    preemptions: int = 0
    migrations: int = 0
    losses: Losses = field(default_factory=Losses)
    useful_gpu_seconds: float = 0.0
    device_usd: float = 0.0  # what GPUs cost by the hour while jobs held them
    egress_usd: float = 0.0  # what data cost that left sites
    late: int = 0  # completed after their deadline
    busy_gpus: int = 0
    busy_by_site: dict[str, int] = field(default_factory=dict)
    busy_gpu_seconds: dict[str, float] = field(default_factory=dict)  # by site, in the arrival window
    counted_at: dict[str, float] = field(default_factory=dict)  # by site, up to when that is
    arriving: bool = True
    last_arrival_at: float = 0.0
    wait_seconds: array[float] = field(default_factory=lambda: array("d"))
    waited_gpus: array[int] = field(default_factory=lambda: array("l"))  # that each of these asked for
    completion_seconds: array[float] = field(default_factory=lambda: array("d"))

    @property
    def ended(self) -> int:
        return self.completed + self.failed + self.refusals

    def check(self) -> None:
        """Nobody is lost: queued, running and ended make up all that were submitted."""
        assert self.waiting + self.running + self.ended == self.submitted, self

    def move(self, at: float) -> None:
        """Count busy GPUs up to now."""
        for site in self.busy_by_site:
            self._count(site, at)

    def hold(self, site: str, gpus: int, at: float) -> None:
        """So many GPUs of a site are taken, or given back where negative."""
        self._count(site, at)
        self.busy_gpus += gpus
        self.busy_by_site[site] = self.busy_by_site.get(site, 0) + gpus

    def _count(self, site: str, at: float) -> None:
        if self.arriving:
            seconds = at - self.counted_at.get(site, at)
            busy = self.busy_by_site.get(site, 0) * seconds
            self.busy_gpu_seconds[site] = self.busy_gpu_seconds.get(site, 0.0) + busy
        self.counted_at[site] = at

    def wait(self, submitted_at: float, started_at: float, gpus: int) -> None:
        """A job began for the first time; a wait beyond the last arrival counts up to there."""
        until = started_at if self.arriving else min(started_at, self.last_arrival_at)
        self.wait_seconds.append(max(0.0, until - submitted_at))
        self.waited_gpus.append(gpus)
