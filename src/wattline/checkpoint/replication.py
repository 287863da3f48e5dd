"""Replication: how does another store come to have the same checkpoints, over a link that may be poor?

A checkpoint is copied pack by pack, each in parts that stay where they arrived: after a cut only what was on
its way is sent again. A pack is verified where it arrived as soon as its last part is there, and the manifest
follows when all its packs are. So a store never shows a checkpoint that it does not have.

A long way is paid for each time one thing waits for the next, so what can be asked or sent at once is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from threading import Lock

from wattline.checkpoint.chunks import Pack
from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.reading import Opened, open_checkpoint, open_newest, verify_tensors
from wattline.checkpoint.repository import PACKS, list_checkpoints, publish, require_current
from wattline.checkpoint.stores import MissingError, Store

Progress = Callable[[int, int], None]  # bytes that have arrived, and bytes in all


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A checkpoint that is now at the far end."""

    name: str
    step: int
    epoch: int
    digest: str
    size_bytes: int  # of its packs
    sent_bytes: int  # in this call: what was there already was not sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What of one store another one has."""

    complete: tuple[str, ...]
    missing: tuple[str, ...]  # newest first
    missing_bytes: int

    @property
    def is_full(self) -> bool:
        return not self.missing


def copy_checkpoint(
    source: Store,
    target: Store,
    *,
    name: str | None = None,
    streams: int | None = None,
    progress: Progress | None = None,
) -> Copied | None:
    """Copy a checkpoint, or the newest that verifies; None when the source has none at all.

    The copy is subject to the target's fence: a late replica may not slip under a newer attempt.
    """
    if name is not None:
        return _copy(open_checkpoint(source, name), target, streams, progress)
    while (found := open_newest(source, verify_tensors)) is not None:
        opened = found[0]
        try:
            return _copy(opened, target, streams, progress)
        except MissingError:
            if any(entry.name == opened.name for entry in list_checkpoints(source)):
                raise
            # Pruned while it was copied: there is a newer one.
    return None


def _copy(opened: Opened, target: Store, streams: int | None, progress: Progress | None) -> Copied:
    manifest = opened.manifest
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_missing_packs, target, opened)
        require_current(target, manifest.epoch)
        packs = asked.result()
    many = target.streams if streams is None else streams
    sent_bytes = _send_packs(opened.store, target, packs, many, progress)
    if packs or not _has_manifest(target, opened):
        publish(target, opened.raw_manifest, step=manifest.step, epoch=manifest.epoch)
    return Copied(
        name=opened.name,
        step=manifest.step,
        epoch=manifest.epoch,
        digest=opened.digest,
        size_bytes=sum(pack.size_bytes for pack in manifest.table.packs.values()),
        sent_bytes=sent_bytes,
    )


def replicate(
    source: Store, target: Store, *, streams: int | None = None, progress: Progress | None = None
) -> tuple[Copied, ...]:
    """Copy every checkpoint that the target lacks, the newest first."""
    return tuple(
        copied
        for name in coverage(source, target).missing
        if (copied := copy_checkpoint(source, target, name=name, streams=streams, progress=progress))
    )


def coverage(source: Store, target: Store) -> Coverage:
    """Which of the source's checkpoints the target has in full: the same manifest, and every pack of it."""
    complete, missing = [], []
    lacking: dict[str, int] = {}
    for entry in list_checkpoints(source):
        opened = open_checkpoint(source, entry.name)
        packs = _missing_packs(target, opened)
        if not packs and _has_manifest(target, opened):
            complete.append(entry.name)
        else:
            missing.append(entry.name)
            lacking |= {pack.name: pack.size_bytes for pack in packs}
    return Coverage(complete=tuple(complete), missing=tuple(missing), missing_bytes=sum(lacking.values()))


def _has_manifest(target: Store, opened: Opened) -> bool:
    try:
        return open_checkpoint(target, opened.name).digest == opened.digest
    except CheckpointError:
        return False


def _missing_packs(target: Store, opened: Opened) -> Sequence[Pack]:
    """Small ones first: what is complete soon counts soon."""
    sizes = {stored.name: stored.size_bytes for stored in target.list(PACKS)}
    packs = opened.manifest.table.packs.values()
    return sorted(
        (pack for pack in packs if sizes.get(pack.name) != pack.size_bytes),
        key=lambda pack: pack.size_bytes,
    )


def _send_packs(
    source: Store, target: Store, packs: Sequence[Pack], streams: int, progress: Progress | None
) -> int:
    """All packs, in steps: what a step makes possible goes before what was waiting, so that sending begins
    while packs are still asked for, and a pack is finished when its last part is there."""
    steps = deque[_Step](_Transfer(source, target, pack).begin for pack in packs)
    whole_bytes = sum(pack.size_bytes for pack in packs)
    arrived_bytes = sent_bytes = 0
    with ThreadPoolExecutor(streams, thread_name_prefix="replicate") as pool:
        flying: set[Future[_Done]] = set()
        try:
            while steps or flying:
                while steps and len(flying) < streams:
                    flying.add(pool.submit(steps.popleft()))
                finished, flying = wait(flying, return_when=FIRST_COMPLETED)
                for done in [future.result() for future in finished]:
                    steps.extendleft(reversed(done.then))
                    arrived_bytes, sent_bytes = (
                        arrived_bytes + done.arrived_bytes,
                        sent_bytes + done.sent_bytes,
                    )
                    if progress is not None and done.arrived_bytes:
                        progress(arrived_bytes, whole_bytes)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return sent_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """What a step brought about, and the steps it made possible."""

    arrived_bytes: int = 0  # are there now, whether sent by it or found
    sent_bytes: int = 0
    then: Sequence[_Step] = ()


_Step = Callable[[], _Done]


class _Transfer:
    """One pack: asked for, sent in parts, finished."""

    def __init__(self, source: Store, target: Store, pack: Pack) -> None:
        self._source, self._target, self._pack, self._lock = source, target, pack, Lock()

    def begin(self) -> _Done:
        pack = self._pack
        self._arriving = self._target.arrive(pack.name, pack.size_bytes, pack.blake3)
        missing = self._arriving.missing
        self._left = len(missing)
        left_bytes = sum(self._part_bytes(number) for number in missing)
        then: list[_Step] = [partial(self._send, number) for number in missing]
        return _Done(arrived_bytes=pack.size_bytes - left_bytes, then=then or [self._finish])

    def _send(self, number: int) -> _Done:
        size_bytes = self._part_bytes(number)
        data = self._source.read(self._pack.name, number * self._arriving.part_bytes, size_bytes)
        self._arriving.put(number, memoryview(data))
        with self._lock:
            self._left -= 1
            then = [] if self._left else [self._finish]
        return _Done(arrived_bytes=size_bytes, sent_bytes=size_bytes, then=then)

    def _finish(self) -> _Done:
        self._arriving.finish()
        return _Done()

    def _part_bytes(self, number: int) -> int:
        return min(self._arriving.part_bytes, self._pack.size_bytes - number * self._arriving.part_bytes)
