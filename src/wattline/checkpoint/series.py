"""Series: how does a run save again and again while it goes on training?

The training thread pays for a copy of what may change at any moment. Threads behind it copy the rest, then
hash, encode and write the copy, which stays in memory as what the next save is a difference to. So there are
never more than two copies, and a save that comes while another is written is skipped, and counted: the next
one will have what it had. A save that somebody waits for is neither copied nor encoded: it is durable sooner.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from wattline.checkpoint.chunks import Table
from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.retention import prune_after_saving
from wattline.checkpoint.saving import LONGEST_CHAIN, NO_METRICS, NOTHING, Former, Saved, save_after
from wattline.checkpoint.staging import DisturbedError, Staging
from wattline.checkpoint.stores import Store
from wattline.checkpoint.tensors import Array


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
    """One run's checkpoints in one store. The training thread alone calls it, but for `release`."""

    def __init__(self, store: Store, *, epoch: int, keep: int | None, lineage: Mapping[str, str]) -> None:
        self.skipped = 0
        self._store, self._epoch, self._keep, self._lineage = store, epoch, keep, lineage
        self._former = NOTHING
        self._saves = 0
        self._spare: dict[str, Array] = {}  # buffers of the copy before the last
        self._trusts = True  # that what is said to hold still does
        self._copying: _Copying | None = None
        self._thread: threading.Thread | None = None
        self._written: Written | None = None
        self._stopped_seconds = 0.0
        self._failure: BaseException | None = None

    def build_on(self, digest: str, table: Table) -> None:
        """Go on from a restored checkpoint: what has not changed since is not written again."""
        self._former = Former(digest, table)

    def begin(
        self, tree: object, step: int, *, whole: bool = False, metrics: Mapping[str, float] = NO_METRICS
    ) -> bool:
        """Save behind the caller's back; False, and counted, while another save is being written.

        Arrays may be changed when it returns, those that are `Still` after `release`. `whole`: not as a
        difference, so that it travels alone.
        """
        if self._thread is not None and self._thread.is_alive():
            self.skipped += 1
            return False
        self.end()
        started = time.monotonic()
        staging = Staging(self._spare, trusts=self._trusts)
        staged = staging.stage(tree)
        self._spare = {}
        copying = self._copying = _Copying(staging)
        former, table_only = self._former, whole or self._saves == 1
        # The second is written whole as well: from then on no damage to one file takes all there is.
        building_on = Former(former.digest, former.table) if table_only else former

        def write() -> tuple[Saved, Former]:
            copying.thread.join()
            staging.require_undisturbed()
            return self._save(
                building_on, staged, step, metrics=dict(metrics), confirm=staging.require_undisturbed
            )

        self._thread = threading.Thread(target=self._write, args=(write, step, started), name="checkpoint")
        copying.thread.start()
        self._thread.start()
        self._stopped_seconds = time.monotonic() - started
        return True

    def release(self) -> None:
        """Wait until what holds still is copied; before it changes, from any thread."""
        copying = self._copying
        if copying is None:
            return
        started = time.monotonic()
        copying.thread.join()  # in a forked child it counts as ended: there nobody waits for ever
        copying.staging.let_go()
        self._copying = None
        self._stopped_seconds += time.monotonic() - started

    def save_now(self, tree: object, step: int, *, metrics: Mapping[str, float] = NO_METRICS) -> None:
        """Save while the caller waits, as soon as it can be durable; `take` tells what came of it.

        Nothing is copied, and chunks are stored as they are: encoding takes longer than writing them. The
        save after it is no difference, since the arrays of this one are the caller's.
        """
        self.end()
        started = time.monotonic()

        def write() -> tuple[Saved, Former]:
            before = Former(self._former.digest, self._former.table)
            saved, former = self._save(before, tree, step, metrics=metrics, is_raw=True)
            return saved, Former(former.digest, former.table)

        self._write(write, step, started)
        self.end()
        assert self._written is not None
        self._stopped_seconds = self._written.seconds

    def end(self) -> None:
        """Wait for the save being written, if there is one."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._copying = None
        if self._failure is not None:  # a fault of our own, not of the store
            failure, self._failure = self._failure, None
            raise failure

    def take(self) -> Written | None:
        """The save that has ended since the last call, if one has."""
        if self._thread is not None and self._thread.is_alive():
            return None
        self.end()
        written, self._written = self._written, None
        return None if written is None else replace(written, stopped_seconds=self._stopped_seconds)

    def _save(
        self,
        former: Former,
        tree: object,
        step: int,
        *,
        metrics: Mapping[str, float],
        is_raw: bool = False,
        confirm: Callable[[], None] = lambda: None,
    ) -> tuple[Saved, Former]:
        return save_after(
            former,
            self._store,
            tree,
            step=step,
            epoch=self._epoch,
            lineage=self._lineage,
            metrics=metrics,
            longest_chain=min(LONGEST_CHAIN, self._keep or LONGEST_CHAIN),
            is_raw=is_raw,
            confirm=confirm,
        )

    def _write(self, write: Callable[[], tuple[Saved, Former]], step: int, started: float) -> None:
        saved, error, seconds, former = None, None, 0.0, self._former
        try:
            saved, self._former = write()
            seconds = time.monotonic() - started
            self._saves += 1
            self._spare = {place: array for place, (_, array) in former.tensors.items()}
            if self._keep is not None:
                prune_after_saving(self._store, saved.name, keep=self._keep)
        except CheckpointError as fault:
            error = fault
            self._trusts = self._trusts and not isinstance(fault, DisturbedError)
        except BaseException as fault:  # noqa: BLE001  a thread has nobody to tell; `end` raises it
            self._failure = fault
        self._written = Written(
            step=step,
            saved=saved,
            error=error,
            stopped_seconds=self._stopped_seconds,
            seconds=seconds or time.monotonic() - started,
        )


class _Copying:
    """A copy being made of what holds still."""

    def __init__(self, staging: Staging) -> None:
        self.staging = staging
        self.thread = threading.Thread(target=staging.copy_watched, name="copy")
