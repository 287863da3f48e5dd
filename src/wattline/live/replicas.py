"""Replicas: are a run's checkpoints also where its owner wanted them, and who takes them there?

Each new checkpoint is copied behind the loop's back, one at a time, the newest first, no faster than the link
gives to checkpoints. While a link carries nothing they stay where they are, which is told once, as is that
all has arrived after all.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from wattline.checkpoint import (
    CheckpointError,
    LocalStore,
    PacedStore,
    Rate,
    StorageError,
    Store,
    coverage,
    list_checkpoints,
    replicate,
)
from wattline.checkpoint.retention import prune_after_saving
from wattline.live.home import Home
from wattline.state import CheckpointCopied, Job, Noticed
from wattline.units import format_bytes

_AGAIN_SECONDS = 5.0
StoreOf = Callable[[str, str, str], Store]
"""Where the checkpoints of a phase lie at a site: by site, run and phase."""
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
    attempt: int = 0  # that saved them


class Replicas:
    """What is on its way. `saved` and `poll` are called by the loop's thread alone."""

    def __init__(self, store_of: StoreOf, rate_to: RateTo) -> None:
        self._store_of, self._rate_to = store_of, rate_to
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="wattline-replicas")
        self._wanted: dict[_Way, None] = {}  # in the order in which they were asked for
        self._going: tuple[_Way, Rate | None, Future[int]] | None = None
        self._again: dict[_Way, float] = {}  # what could not go, and when it is tried once more
        self._behind: dict[_Way, str] = {}  # why something has not arrived

    def saved(self, job: Job, site: str) -> None:
        """A checkpoint was saved: it is wanted at every site that its owner named."""
        request = job.request
        for target in request.replicate_to:
            if target != site:
                self._wanted[_Way(job.id, request.run, request.phase, site, target, job.attempt)] = None

    def is_busy(self, jobs: tuple[str, ...]) -> bool:
        """Whether something of these jobs is on its way, or will be as soon as it is its turn."""
        going = [self._going[0]] if self._going is not None else []
        return any(way.job in jobs and self._can_go(way) for way in (*going, *self._wanted))

    def poll(self, at: float) -> list[Noticed | CheckpointCopied]:
        """Go on with the next; what there is to tell."""
        told: list[Noticed | CheckpointCopied] = []
        if self._going is not None:
            way, rate, future = self._going
            allowed = self._rate_to(way.origin, way.target)
            if rate is not None and allowed:
                rate.change(allowed)
            if not future.done():
                return told
            self._going = None
            told += self._tell(way, future, at)
        for way, due_at in list(self._again.items()):
            if at >= due_at:
                del self._again[way]
                self._wanted[way] = None
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
        self._going = (way, rate, self._worker.submit(_go, self._store_of, way, rate))

    def _tell(self, way: _Way, future: Future[int], at: float) -> list[Noticed | CheckpointCopied]:
        error = future.exception()
        if error is not None:
            say = error.message if isinstance(error, CheckpointError) else f"{type(error).__name__}: {error}"
            if isinstance(error, StorageError):  # the far end was not there
                self._again[way] = at + _AGAIN_SECONDS
            return [*self._tell_behind(way, say, at)]
        copied = CheckpointCopied(
            at=at, job=way.job, attempt=way.attempt, step=future.result(), site=way.target
        )
        if self._behind.pop(way, None) is None:
            return [copied]
        return [copied, _noticed(way, f"all its checkpoints are at {way.target} now", at)]

    def _tell_behind(self, way: _Way, why: str, at: float) -> list[Noticed]:
        if self._behind.get(way) == why:
            return []
        self._behind[way] = why
        try:
            missing = format_bytes(coverage(*_stores(self._store_of, way)).missing_bytes)
        except CheckpointError:
            missing = "its checkpoints"
        return [_noticed(way, f"{missing} are not at {way.target}: {why}", at)]


def _go(store_of: StoreOf, way: _Way, rate: Rate | None) -> int:
    """Not in the loop's thread: a site that cannot be reached takes its time to say so."""
    source, target = _stores(store_of, way)
    return _bring(source, target if rate is None else PacedStore(target, rate))


def _bring(source: Store, target: Store) -> int:
    """All that the other store lacks; it then keeps as many as the first does. The step of its newest."""
    copied = replicate(source, target)
    if copied:
        newest = list_checkpoints(source)
        prune_after_saving(target, copied[0].name, keep=max(1, len(newest)))
    return max((entry.step for entry in list_checkpoints(target)), default=0)


def find_lacking(home: Home, job: Job, agents: Container[str] = ()) -> str:
    """What of a job's checkpoints is not where its owner wanted them, as a sentence; empty where all is.

    What lies at a site with an agent is not in this home: there, what arrived counts as it was told.
    """
    if job.saved is None or job.saved.site in agents:
        return ""
    arrived = dict(job.copies)
    for target in job.request.replicate_to:
        way = _Way(job.id, job.request.run, job.request.phase, job.saved.site, target)
        if target == job.saved.site:
            continue
        if target in agents:
            if arrived.get(target, -1) < job.saved.step:
                return f"{target} lacks step {job.saved.step} of {job.id}"
            continue
        try:
            found = coverage(*_stores(local_stores(home), way))
        except CheckpointError as error:
            return f"{target} cannot be looked at: {error.message}"
        if not found.is_full:
            missing = format_bytes(found.missing_bytes)
            return f"{target} lacks {', '.join(found.missing[:3])} of {job.id} ({missing})"
    return ""


def local_stores(home: Home) -> StoreOf:
    """Every site's checkpoints in folders of this home."""
    return lambda site, run, phase: LocalStore(home.checkpoints(site, run, phase))


def _stores(store_of: StoreOf, way: _Way) -> tuple[Store, Store]:
    return store_of(way.origin, way.run, way.phase), store_of(way.target, way.run, way.phase)


def _noticed(way: _Way, say: str, at: float) -> Noticed:
    return Noticed(at=at, subject=way.job, say=say, job=way.job)
