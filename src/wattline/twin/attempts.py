"""Attempts: how far has each job come, how fast is it going, and what was lost on the way?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from wattline.twin.workload import Arrival


@dataclass(slots=True)
class Losses:
    """GPU-seconds that were held and brought no job forward, by why."""

    throttle: float = 0.0
    restart: float = 0.0
    preempt: float = 0.0
    pause: float = 0.0


class Progress(msgspec.Struct, eq=False):
    """One job over all its attempts. Work is in seconds at full speed."""

    arrival: Arrival
    done_seconds: float = 0.0
    kept_seconds: float = 0.0  # … of which a checkpoint has
    kept_at: float = 0.0  # when the newest was saved, by whichever attempt
    attempts: int = 0
    left_by: str = ""  # why the last attempt left: what the next one's start is charged to
    saved_site: str = ""


class Attempt(msgspec.Struct, eq=False):
    """One job on its nodes. Its rate is constant between changes."""

    job: str
    number: int
    progress: Progress
    nodes: tuple[tuple[int, int], ...]
    site: str
    gpus: int
    spread_speed: float  # what distance between its nodes leaves, and how many GPUs they are
    started_at: float
    at: float  # up to when it was counted
    working_at: float  # before this it starts up, or comes back from a checkpoint
    start_charged_to: str
    cap_fraction: float = 1.0
    batch_fraction: float = 1.0
    pace: float = 1.0  # by power and heat
    saving: bool = False
    saving_since: float = math.inf
    egress_usd: float = 0.0  # what it cost that its checkpoint, or what it made, left a site
    planned: int = 0  # the agenda's entry for its end; all others of its job are stale

    @property
    def rate(self) -> float:
        """Seconds of work for each second, once it works."""
        return 0.0 if self.saving else self.pace * self.spread_speed * self.batch_fraction

    def ends_at(self) -> float:
        """When its work is done if nothing changes."""
        rate = self.rate
        if rate <= 0.0:
            return math.inf
        left = self.progress.arrival.work_seconds - self.progress.done_seconds
        return max(self.at, self.working_at) + max(0.0, left) / rate

    def count(self, at: float, losses: Losses) -> None:
        """Bring its progress up to now; what was held and not used is lost to somebody."""
        worked_from = min(max(self.at, self.working_at), at)
        starting = worked_from - self.at
        if starting > 0.0:
            self._lose(losses, self.start_charged_to, starting)
        seconds = at - worked_from
        if seconds > 0.0:
            if self.saving:
                self._lose(losses, self.progress.left_by, seconds)
            else:
                progress, work = self.progress, self.progress.arrival.work_seconds
                progress.done_seconds = min(work, progress.done_seconds + seconds * self.rate)
                self._lose(losses, "throttle", seconds * (1.0 - self.pace * self.batch_fraction))
        self.at = at

    def keep(self, at: float) -> None:
        """What a job that saves now and then has kept when it is cut off."""
        every = self.progress.arrival.saved_every_seconds
        if every <= 0.0:
            return
        # A save that is cut off kept nothing, and nothing was done since it began.
        worked = max(0.0, min(at, self.saving_since) - max(self.started_at, self.working_at))
        since_saved = worked % every * self.pace * self.spread_speed * self.batch_fraction
        if worked >= every:
            kept = max(self.progress.kept_seconds, self.progress.done_seconds - since_saved)
            self.progress.kept_seconds = min(kept, self.progress.done_seconds)
            self.progress.kept_at = at - worked % every

    def fall_back(self, losses: Losses) -> None:
        """What no checkpoint has must be done again."""
        lost = self.progress.done_seconds - self.progress.kept_seconds
        self._lose(losses, "restart", lost)
        self.progress.done_seconds = self.progress.kept_seconds

    def _lose(self, losses: Losses, why: str, seconds: float) -> None:
        if seconds > 0.0:
            setattr(losses, why, getattr(losses, why) + self.gpus * seconds)
