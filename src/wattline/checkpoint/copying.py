"""Copying: how does the newest good checkpoint reach another site's repository?"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from wattline.checkpoint.draft import Draft, open_draft
from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.reading import (
    CHUNK_BYTES,
    OpenCheckpoint,
    open_checkpoint,
    open_newest,
    verify_tensors,
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """A checkpoint that is now at the far end; no bytes were copied if it was there already."""

    path: Path
    step: int
    epoch: int
    digest: str
    copied_bytes: int


def copy_checkpoint(
    source_root: Path,
    target_root: Path,
    *,
    keep: int | None = None,
    bytes_per_second: float | None = None,
    progress: Progress | None = None,
) -> Copied | None:
    """Copy the newest checkpoint that verifies; None when the source has none at all.

    The copy is subject to the target's fence: a late replica may not slip under a newer attempt.
    `progress` is told the bytes copied and the bytes in all.
    """
    if bytes_per_second is not None and not bytes_per_second > 0:
        raise CheckpointError(f"cannot copy at {bytes_per_second} bytes per second")
    found = open_newest(source_root, verify_tensors)
    if found is None:
        return None
    source, _, _ = found
    with closing(source):
        name = source.path.name
        if _is_there(target_root / name, source.digest):
            return _copied(source, target_root / name, 0)
        with open_draft(target_root, epoch=source.manifest.epoch) as draft:
            _copy_tensors(source, draft, bytes_per_second, progress)
            draft.finish(source.raw_manifest)
            with closing(open_checkpoint(draft.path, named=False)) as arrived:
                verify_tensors(arrived)
            path = draft.publish(step=source.manifest.step, epoch=source.manifest.epoch, keep=keep)
        return _copied(source, path, source.total_bytes)


def _copy_tensors(
    source: OpenCheckpoint, draft: Draft, bytes_per_second: float | None, progress: Progress | None
) -> None:
    """In small chunks when limited, so that the limit holds over a fraction of a second."""
    chunk_bytes = (
        CHUNK_BYTES if bytes_per_second is None else max(1, min(CHUNK_BYTES, int(bytes_per_second / 4)))
    )
    started = time.monotonic()
    source.tensors.seek(0)
    copied = 0
    while chunk := source.tensors.read(chunk_bytes):
        draft.write(memoryview(chunk))
        copied += len(chunk)
        if bytes_per_second is not None:
            time.sleep(max(0.0, started + copied / bytes_per_second - time.monotonic()))
        if progress is not None:
            progress(copied, source.manifest.tensors_bytes)


def _is_there(path: Path, digest: str) -> bool:
    if not path.exists():
        return False
    try:
        with closing(open_checkpoint(path)) as present:
            verify_tensors(present)
            return present.digest == digest
    except CheckpointError:
        return False


def _copied(source: OpenCheckpoint, path: Path, copied_bytes: int) -> Copied:
    return Copied(
        path=path,
        step=source.manifest.step,
        epoch=source.manifest.epoch,
        digest=source.digest,
        copied_bytes=copied_bytes,
    )
