"""Series: how does a run save again and again while it goes on training?

The training thread pays for a copy. A thread behind it hashes, encodes and writes the copy, which then stays
in memory as what the next save is a difference to. So there are never more than two copies, and a save that
comes while another is written is skipped, and counted: the next one will have what it had.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattline.checkpoint.chunks import Table
from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.retention import prune_after_saving
from wattline.checkpoint.saving import LONGEST_CHAIN, NO_METRICS, NOTHING, Former, Saved, save_after
from wattline.checkpoint.stores import Store
from wattline.checkpoint.tensors import Array

_COPIERS = min(4, len(os.sched_getaffinity(0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A save that has ended: what it published, or why it could not.

    Both where it is there and only those before it could not be pruned.
    """

    step: int
    saved: Saved | None
    error: CheckpointError | None
    stopped_seconds: float  # what the training thread paid
    seconds: float  # from being asked to being durable


class Series:
    """One run's checkpoints in one store. Not for several threads: the training thread alone calls it."""

    def __init__(self, store: Store, *, epoch: int, keep: int | None, lineage: Mapping[str, str]) -> None:
        self.skipped = 0
        self._store, self._epoch, self._keep, self._lineage = store, epoch, keep, lineage
        self._former = NOTHING
        self._saves = 0
        self._spare: dict[str, Array] = {}  # buffers of the copy before the last
        self._thread: threading.Thread | None = None
        self._written: Written | None = None
        self._failure: BaseException | None = None

    def build_on(self, digest: str, table: Table) -> None:
        """Go on from a restored checkpoint: what has not changed since is not written again."""
        self._former = Former(digest, table)

    def begin(
        self, tree: object, step: int, *, whole: bool = False, metrics: Mapping[str, float] = NO_METRICS
    ) -> bool:
        """Save behind the caller's back; False, and counted, while another save is being written.

        `whole`: not as a difference, so that it travels alone.
        """
        if self._thread is not None and self._thread.is_alive():
            self.skipped += 1
            return False
        self.end()
        started = time.monotonic()
        staging = _Staging(self._spare)
        copied = staging.stage(tree)
        staging.fill()
        self._spare = {}
        stopped_seconds = time.monotonic() - started
        self._thread = threading.Thread(
            target=self._write,
            args=(copied, step, started, stopped_seconds, whole, dict(metrics)),
            name="checkpoint",
        )
        self._thread.start()
        return True

    def end(self) -> None:
        """Wait for the save being written, if there is one."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failure is not None:  # a fault of our own, not of the store
            failure, self._failure = self._failure, None
            raise failure

    def take(self) -> Written | None:
        """The save that has ended since the last call, if one has."""
        if self._thread is not None and self._thread.is_alive():
            return None
        self.end()
        written, self._written = self._written, None
        return written

    def _write(
        self,
        tree: object,
        step: int,
        started: float,
        stopped_seconds: float,
        whole: bool,
        metrics: Mapping[str, float],
    ) -> None:
        saved, error, seconds, former = None, None, 0.0, self._former
        # The second is written whole as well: from then on no damage to one file takes all there is.
        building_on = Former(former.digest, former.table) if whole or self._saves == 1 else former
        try:
            saved, self._former = save_after(
                building_on,
                self._store,
                tree,
                step=step,
                epoch=self._epoch,
                lineage=self._lineage,
                metrics=metrics,
                longest_chain=min(LONGEST_CHAIN, self._keep or LONGEST_CHAIN),
            )
            seconds = time.monotonic() - started
            self._saves += 1
            self._spare = {place: array for place, (_, array) in former.tensors.items()}
            if self._keep is not None:
                prune_after_saving(self._store, saved.name, keep=self._keep)
        except CheckpointError as fault:
            error = fault
        except BaseException as fault:  # noqa: BLE001  a thread has nobody to tell; `end` raises it
            self._failure = fault
        self._written = Written(
            step=step,
            saved=saved,
            error=error,
            stopped_seconds=stopped_seconds,
            seconds=seconds or time.monotonic() - started,
        )


class _Staging:
    """Copies a tree, into buffers that are there already where they fit: new memory costs more than that."""

    def __init__(self, spare: dict[str, Array]) -> None:
        self._spare = spare
        self._copies: list[tuple[Array, Array]] = []  # into which, from which

    def stage(self, value: Any, place: str = "") -> Any:
        """The same tree with arrays of its own, which `fill` fills.

        What `tree.encode` refuses, such as a masked array, stays as it is and is refused there.
        """
        if type(value) in (np.ndarray, np.memmap):
            buffer = self._spare.pop(place, None)
            if buffer is None or (buffer.dtype, buffer.shape) != (value.dtype, value.shape):
                buffer = np.empty(value.shape, value.dtype)
            self._copies.append((buffer, value))
            return buffer
        if isinstance(value, dict):
            return {key: self.stage(item, f"{place}/{key}") for key, item in value.items()}
        if isinstance(value, list | tuple):  # a named tuple is kept as a tuple
            staged = [self.stage(item, f"{place}/{index}") for index, item in enumerate(value)]
            return staged if isinstance(value, list) else tuple(staged)
        return value

    def fill(self) -> None:
        """One thread does not take all that memory gives."""
        with ThreadPoolExecutor(_COPIERS, thread_name_prefix="copy") as pool:
            list(pool.map(lambda each: np.copyto(*each), self._copies))
