"""Watching: what does Slurm's queue look like now? One question for all jobs, in the background."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from wattline.engines.slurm.cluster import Cluster
from wattline.engines.slurm.listing import TAKEN_AWAY, QueuedJob, SlurmNode
from wattline.errors import WattlineError

_NODES_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen by one look, which began at `at` by the monotonic clock."""

    at: float
    jobs: dict[str, QueuedJob] = field(default_factory=dict)
    nodes: dict[str, SlurmNode] | None = None  # None: those were not looked at this time


class QueueWatch:
    """What was seen last stays known while Slurm does not answer."""

    def __init__(self, cluster: Cluster, period_seconds: float, wake: threading.Event) -> None:
        self._cluster = cluster
        self._period_seconds = period_seconds
        self._wake = wake
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="wattline-squeue")
        self._asked: Future[Look] | None = None
        self._is_closed = False
        self._next_at = 0.0
        self._nodes_at = 0.0
        self._taken_away: set[str] = set()
        self.trouble: WattlineError | None = None

    def turn(self) -> Look | None:
        """What a look that has come back saw, if one has; the next begins when it is due."""
        found = None
        if self._asked is not None and self._asked.done():
            asked, self._asked = self._asked, None
            self._next_at = time.monotonic() + self._period_seconds
            try:
                found, self.trouble = asked.result(), None
            except WattlineError as error:
                self.trouble = error
        if self._asked is None and time.monotonic() >= self._next_at and not self._is_closed:
            self._asked = self._thread.submit(self._look)
            self._asked.add_done_callback(lambda _: self._wake.set())
        return found

    def look_now(self) -> None:
        """Wait for a look, so that nothing is decided on what nobody has looked at."""
        self._asked = self._thread.submit(self._look)
        wait([self._asked])

    def close(self) -> None:
        self._is_closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _look(self) -> Look:
        at = time.monotonic()
        jobs = self._cluster.queue()
        taken_away = {job.job for job in jobs.values() if job.state in TAKEN_AWAY}
        had, self._taken_away = self._taken_away, taken_away
        if at < self._nodes_at and taken_away <= had:  # else a node has just gone: nobody must go there
            return Look(at, jobs)
        nodes = self._cluster.nodes()
        self._nodes_at = at + _NODES_SECONDS
        return Look(at, jobs, nodes)
