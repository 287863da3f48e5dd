"""Replicas: are a run's checkpoints also where its owner wanted them, and who takes them there?

Each new checkpoint is copied behind the loop's back, one at a time, the newest first, no faster than the link
gives to checkpoints. While a link carries nothing they stay where they are, which is told once, as is that
all has arrived after all.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from wattline.checkpoint import (
    CheckpointError,
    LocalStore,
    PacedStore,
    Rate,
    Store,
    coverage,
    list_checkpoints,
    replicate,
)
from wattline.checkpoint.retention import prune_after_saving
from wattline.live.home import Home
from wattline.state import Job, Noticed
from wattline.units import format_bytes

RateTo = Callable[[str, str], float | None]
"""Bytes per second from one site to another now: 0 where the link carries nothing, None without a link."""


@dataclass(frozen=True, slots=True)
class _Way:
    """One phase's checkpoints, from the site they are saved at to another."""

    job: str
    run: str
    phase: str
    origin: str
    target: str


class Replicas:
    """What is on its way. `saved` and `poll` are called by the loop's thread alone."""

    def __init__(self, home: Home, rate_to: RateTo) -> None:
        self._home, self._rate_to = home, rate_to
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="wattline-replicas")
        self._wanted: dict[_Way, None] = {}  # in the order in which they were asked for
        self._going: tuple[_Way, Rate | None, Future[None]] | None = None
        self._behind: dict[_Way, str] = {}  # why something has not arrived

    def saved(self, job: Job, site: str) -> None:
        """A checkpoint was saved: it is wanted at every site that its owner named."""
        request = job.request
        for target in request.replicate_to:
            if target != site:
                self._wanted[_Way(job.id, request.run, request.phase, site, target)] = None

    def is_busy(self, jobs: tuple[str, ...]) -> bool:
        """Whether something of these jobs is on its way, or will be as soon as it is its turn."""
        going = [self._going[0]] if self._going is not None else []
        return any(way.job in jobs and self._can_go(way) for way in (*going, *self._wanted))

    def poll(self, at: float) -> list[Noticed]:
        """Go on with the next; what there is to tell."""
        told: list[Noticed] = []
        if self._going is not None:
            way, rate, future = self._going
            allowed = self._rate_to(way.origin, way.target)
            if rate is not None and allowed:
                rate.change(allowed)
            if not future.done():
                return told
            self._going = None
            told += self._tell(way, future, at)
        for way in list(self._wanted):
            if self._can_go(way):
                del self._wanted[way]
                self._begin(way)
                break
            told += self._tell_behind(way, f"the link from {way.origin} carries nothing now", at)
        return told

    def close(self) -> None:
        self._wanted.clear()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _can_go(self, way: _Way) -> bool:
        allowed = self._rate_to(way.origin, way.target)
        return allowed is None or allowed > 0.0

    def _begin(self, way: _Way) -> None:
        allowed = self._rate_to(way.origin, way.target)
        rate = None if allowed is None else Rate(allowed)
        source, target = _stores(self._home, way)
        paced = target if rate is None else PacedStore(target, rate)
        self._going = (way, rate, self._worker.submit(_bring, source, paced))

    def _tell(self, way: _Way, future: Future[None], at: float) -> list[Noticed]:
        error = future.exception()
        if error is not None:
            say = error.message if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
            return self._tell_behind(way, say, at)
        if self._behind.pop(way, None) is None:
            return []
        return [_noticed(way, f"all its checkpoints are at {way.target} now", at)]

    def _tell_behind(self, way: _Way, why: str, at: float) -> list[Noticed]:
        if self._behind.get(way) == why:
            return []
        self._behind[way] = why
        try:
            missing = format_bytes(coverage(*_stores(self._home, way)).missing_bytes)
        except CheckpointError:
            missing = "its checkpoints"
        return [_noticed(way, f"{missing} are not at {way.target}: {why}", at)]


def _bring(source: Store, target: Store) -> None:
    """All that the other store lacks; it then keeps as many as the first does."""
    copied = replicate(source, target)
    if copied:
        newest = list_checkpoints(source)
        prune_after_saving(target, copied[0].name, keep=max(1, len(newest)))


def find_lacking(home: Home, job: Job) -> str:
    """What of a job's checkpoints is not where its owner wanted them, as a sentence; empty where all is."""
    if job.saved is None:
        return ""
    for target in job.request.replicate_to:
        way = _Way(job.id, job.request.run, job.request.phase, job.saved.site, target)
        if target == job.saved.site:
            continue
        try:
            found = coverage(*_stores(home, way))
        except CheckpointError as error:
            return f"{target} cannot be looked at: {error.message}"
        if not found.is_full:
            missing = format_bytes(found.missing_bytes)
            return f"{target} lacks {', '.join(found.missing[:3])} of {job.id} ({missing})"
    return ""


def _stores(home: Home, way: _Way) -> tuple[LocalStore, LocalStore]:
    origin, target = (home.checkpoints(site, way.run, way.phase) for site in (way.origin, way.target))
    return LocalStore(origin), LocalStore(target)


def _noticed(way: _Way, say: str, at: float) -> Noticed:
    return Noticed(at=at, subject=way.job, say=say, job=way.job)
