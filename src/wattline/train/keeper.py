"""Keeper: when is this run's state saved, and where does it continue?"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wattline import checkpoint
from wattline.train.errors import ScriptError
from wattline.train.parts import call_before_steps, capture, put_back
from wattline.train.surroundings import Cadence

_FIRST_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The checkpoint that holds the state of a step, and what saving it took."""

    step: int
    path: str
    digest: str
    size_bytes: int  # of all that a copy elsewhere needs
    added_bytes: int  # to the store
    stopped_seconds: float
    seconds: float
    skipped: int  # saves so far whose turn came while another was being written
    cadence: str  # how often it is saved and why, where nobody said


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A save that came to nothing."""

    step: int
    error: checkpoint.CheckpointError


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Where the run continues; no path when every checkpoint was damaged and it starts again."""

    step: int
    path: str | None
    rejected: tuple[checkpoint.Rejected, ...]


class Keeper:
    """One run's use of one checkpoint repository."""

    def __init__(
        self,
        store: checkpoint.Store,
        *,
        epoch: int,
        cadence: Cadence | checkpoint.AutoCadence,
        keep: int | None,
        lineage: Mapping[str, str],
        travels: bool = False,
    ) -> None:
        self._store, self._epoch, self._cadence = store, epoch, cadence
        self._travels = travels
        self._series = checkpoint.Series(store, epoch=epoch, keep=keep, lineage=lineage)
        # What it costs is known after the first save, which therefore does not wait for long.
        self._interval_seconds = _FIRST_SECONDS
        self._counted_at = time.monotonic()
        self._saved_step: int | None = None
        self._tried_step = 0
        self._tried_at = time.monotonic()
        self._waits_before_steps = False

    def resume(self, parts: Mapping[str, Any]) -> Resumed | None:
        """Put every part back as the newest good checkpoint has it; None when there is nothing yet.

        Older attempts are fenced off first, so that what is read here is the last they published.
        """
        checkpoint.fence(self._store, self._epoch)
        try:
            restored = checkpoint.restore(self._store)
        except checkpoint.NothingUsableError as error:
            warnings.warn(f"starting from the beginning: {error.message}", RuntimeWarning, stacklevel=4)
            return Resumed(step=0, path=None, rejected=error.rejected)
        if restored is None:
            return None
        path = self._path(restored.name)
        if not isinstance(restored.tree, dict):
            raise ScriptError(f"{path}: was not written by a training run")
        put_back(parts, restored.tree)
        self._tried_step = self._saved_step = restored.step
        self._series.build_on(restored.digest, restored.table)
        return Resumed(step=restored.step, path=path, rejected=restored.rejected)

    def is_due(self, step: int) -> bool:
        """Has the cadence come round?"""
        seconds = time.monotonic() - self._tried_at
        if isinstance(self._cadence, checkpoint.AutoCadence):
            return step > self._tried_step and seconds >= self._interval_seconds
        return self._cadence.is_due(steps=step - self._tried_step, seconds=seconds)

    def begin(self, parts: Mapping[str, Any], step: int, metrics: Mapping[str, float]) -> None:
        """Save behind the training's back; `take` tells what came of it. A failed save waits for the next
        turn, as does one that is skipped because another is still being written."""
        self._tried_step = step
        if not self._waits_before_steps:
            self._waits_before_steps = call_before_steps(self._series.release)
        self._series.begin(capture(parts, until_step=self._waits_before_steps), step, metrics=metrics)
        self._tried_at = time.monotonic()

    def take(self) -> Kept | Failed | None:
        """A save that has ended since the last call, if one has."""
        written = self._series.take()
        if written is None:
            return None
        if written.saved is not None:
            self._learn(written)
        return self._ended(written)

    def _ended(self, written: checkpoint.Written) -> Kept | Failed:
        if written.saved is None:
            assert written.error is not None
            return Failed(step=written.step, error=written.error)
        if written.error is not None:
            warnings.warn(f"older checkpoints are still there: {written.error}", RuntimeWarning, stacklevel=4)
        self._saved_step = written.step
        return Kept(
            step=written.step,
            path=self._path(written.saved.name),
            digest=written.saved.digest,
            size_bytes=written.saved.size_bytes,
            added_bytes=written.saved.written_bytes,
            stopped_seconds=written.stopped_seconds,
            seconds=written.seconds,
            skipped=self._series.skipped,
            cadence=self._cadence.explain() if isinstance(self._cadence, checkpoint.AutoCadence) else "",
        )

    def _learn(self, written: checkpoint.Written) -> None:
        """What this save cost decides, with how often runs like this fail, when the next is due."""
        if not isinstance(self._cadence, checkpoint.AutoCadence):
            return
        now = time.monotonic()
        self._cadence.ran(now - self._counted_at)
        self._counted_at = now
        behind_seconds = written.seconds - written.stopped_seconds
        self._cadence.saved(written.stopped_seconds, behind_seconds=behind_seconds)
        self._interval_seconds = self._cadence.interval_seconds

    def finish(
        self, parts: Mapping[str, Any], step: int, metrics: Mapping[str, float]
    ) -> list[Kept | Failed]:
        """Wait until this very step is saved, or could not be; all that has ended meanwhile."""
        self._series.end()
        ended = [ended] if (ended := self.take()) is not None else []
        if self._saved_step != step:
            self._tried_step = step
            if self._travels:  # fewer bytes are worth more than soon
                self._series.begin(capture(parts), step, whole=True, metrics=metrics)
                self._series.end()
            else:
                self._series.save_now(capture(parts), step, metrics=metrics)
            self._tried_at = time.monotonic()
            last = self._series.take()
            assert last is not None
            ended.append(self._ended(last))  # and nothing is learnt: it cost what others do not
        return ended

    def _path(self, name: str) -> str:
        return f"{self._store.address}/checkpoints/{name}"
