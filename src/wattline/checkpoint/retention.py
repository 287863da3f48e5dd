"""Retention: which checkpoints, and which leftovers of writers that died, may go?"""

from __future__ import annotations

import fcntl
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from wattline.checkpoint.errors import CheckpointError, storage_errors
from wattline.checkpoint.reading import open_checkpoint, verify
from wattline.checkpoint.repository import TENSORS, Entry, list_checkpoints, locked

WRITING = ".writing-"
REMOVING = ".removing-"


def prune(root: Path, *, keep: int) -> tuple[Path, ...]:
    """Remove all but the `keep` newest checkpoints that verify; returns what went.

    Every byte of those that stay is read first: what this removes may be the last good copy.
    """
    surplus = _surplus(list_checkpoints(root), keep, verify)
    if surplus:
        with storage_errors(f"{root}: cannot be pruned"), locked(root):
            for path in surplus:
                if path.exists():
                    remove(path)
    return surplus


def prune_after_saving(latest: Path, *, keep: int) -> None:
    """The same with the repository locked, trusting sizes and manifests: reading it all costs too much.

    The one just written counts first though it need not be first in order: after falling back past a damaged
    checkpoint a run saves lower steps than the damaged one has.
    """
    entries = sorted(list_checkpoints(latest.parent), key=lambda entry: entry.path != latest)
    for path in _surplus(tuple(entries), keep, lambda path: open_checkpoint(path).close()):
        remove(path)


def _surplus(entries: tuple[Entry, ...], keep: int, check: Callable[[Path], None]) -> tuple[Path, ...]:
    """What lies behind the first `keep` that pass the check; a damaged one is never counted as kept."""
    if keep < 1:
        raise CheckpointError(f"cannot keep {keep} checkpoints", hint="keep at least 1")
    whole = 0
    for position, entry in enumerate(entries):
        if whole == keep:
            return tuple(other.path for other in entries[position:])
        try:
            check(entry.path)
        except CheckpointError:
            continue
        whole += 1
    return ()


def remove(path: Path) -> None:
    """Take a directory out of sight in one step, then delete it; call with the repository locked."""
    doomed = path.with_name(f"{REMOVING}{path.name}-{secrets.token_hex(4)}")
    path.rename(doomed)
    shutil.rmtree(doomed)


def sweep(root: Path) -> None:
    """Delete what dead writers left; one still being written is held by its writer's lock."""
    for path in root.glob(f"{REMOVING}*"):
        shutil.rmtree(path)
    for path in root.glob(f"{WRITING}*"):
        if not _is_being_written(path):
            shutil.rmtree(path)
    for path in root.glob(".fence-*"):
        path.unlink()


def _is_being_written(path: Path) -> bool:
    try:
        file = (path / TENSORS).open("r+b")
    except FileNotFoundError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
