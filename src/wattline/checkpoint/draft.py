"""Draft: how does a checkpoint appear all at once, or not at all?

It is written under a name nobody reads, forced to disk, and renamed while the repository is locked. The
writer holds a lock on its tensors file all along, which is how a sweep tells a draft from a dead writer's.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wattline.checkpoint.errors import storage_errors
from wattline.checkpoint.repository import (
    MANIFEST,
    TENSORS,
    checkpoint_name,
    locked,
    require_current,
    sync_directory,
)
from wattline.checkpoint.retention import WRITING, prune_after_saving, remove, sweep


@dataclass(frozen=True, slots=True)
class Draft:
    """A checkpoint being written."""

    root: Path
    path: Path
    tensors: int

    def write(self, data: memoryview) -> None:
        """Append to the tensors; the operating system may take less than it was given."""
        while data:
            data = data[os.write(self.tensors, data) :]

    def finish(self, raw_manifest: bytes) -> None:
        """Add the manifest and force everything to disk: complete, and still unseen."""
        os.fsync(self.tensors)
        with (self.path / MANIFEST).open("xb") as file:
            file.write(raw_manifest)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.path)

    def publish(self, *, step: int, epoch: int, keep: int | None) -> Path:
        """Make it the checkpoint of its step, unless a newer epoch has fenced this one off meanwhile."""
        target = self.root / checkpoint_name(step, epoch)
        with locked(self.root):
            require_current(self.root, epoch)
            if target.exists():
                remove(target)
            self.path.rename(target)
            sync_directory(self.root)
            if keep is not None:
                prune_after_saving(target, keep=keep)
        return target


@contextmanager
def open_draft(root: Path, *, epoch: int) -> Iterator[Draft]:
    """Start a draft; unless it is published it leaves nothing behind."""
    with storage_errors(f"{root}: the checkpoint could not be saved"):
        root.mkdir(parents=True, exist_ok=True)
        path = root / f"{WRITING}{secrets.token_hex(8)}"
        with locked(root):
            require_current(root, epoch)
            sweep(root)
            path.mkdir()
            tensors = os.open(path / TENSORS, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            fcntl.flock(tensors, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            yield Draft(root, path, tensors)
        finally:
            os.close(tensors)
            shutil.rmtree(path, ignore_errors=True)  # what cannot go now is swept by the next save
