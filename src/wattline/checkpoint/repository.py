"""Repository: which checkpoints are in a directory, and whose turn is it to add one?

A checkpoint is `step-00000120.e3/`. Names that begin with a dot are not checkpoints: `.lock` is held (flock)
around every change that others can see, `.fence` holds the lowest epoch that may still publish.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wattline.checkpoint.errors import CheckpointError, StaleEpochError, storage_errors

MANIFEST = "manifest.json"
TENSORS = "tensors.bin"
MAX_NUMBER = 2**63 - 1
_NAME = re.compile(r"step-(\d{8,19})\.e(\d{1,19})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A checkpoint by its name alone: nothing of it has been read or verified."""

    path: Path
    step: int
    epoch: int


def checkpoint_name(step: int, epoch: int) -> str:
    """The directory's name; sorts by step for people."""
    for what, number in (("step", step), ("epoch", epoch)):
        if not 0 <= number <= MAX_NUMBER:
            raise CheckpointError(f"{what} {number} is not between 0 and {MAX_NUMBER}")
    return f"step-{step:08d}.e{epoch}"


def list_checkpoints(root: Path) -> tuple[Entry, ...]:
    """Newest first: a later epoch owns the repository, so it goes before a higher step."""
    try:
        names = [path.name for path in root.iterdir()]
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise CheckpointError(f"{root}: cannot be listed: {error.strerror}") from error
    entries = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        step, epoch = int(match[1]), int(match[2])
        if max(step, epoch) <= MAX_NUMBER and name == checkpoint_name(step, epoch):
            entries.append(Entry(path=root / name, step=step, epoch=epoch))
    return tuple(sorted(entries, key=lambda entry: (entry.epoch, entry.step), reverse=True))


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Hold the repository for a short change; the kernel lets go if the holder dies."""
    descriptor = os.open(root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def fence(root: Path, epoch: int) -> None:
    """From now on only attempts of this epoch or a later one may publish here."""
    checkpoint_name(0, epoch)
    with storage_errors(f"{root}: cannot be fenced at epoch {epoch}"):
        root.mkdir(parents=True, exist_ok=True)
        with locked(root):
            require_current(root, epoch)
            temporary = root / f".fence-{secrets.token_hex(8)}"
            try:
                with temporary.open("w", encoding="ascii") as file:
                    file.write(f"{epoch}\n")
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(root / ".fence")
            finally:
                temporary.unlink(missing_ok=True)
            sync_directory(root)


def require_current(root: Path, epoch: int) -> None:
    """Raise when the repository has been fenced above this epoch."""
    try:
        with (root / ".fence").open(encoding="ascii", errors="replace") as file:
            text = file.read(64)
    except FileNotFoundError:
        return
    if not re.fullmatch(r"\d{1,19}\n", text, re.ASCII):
        raise CheckpointError(
            f"{root / '.fence'}: holds {text!r} instead of an epoch, so nothing may be published",
            hint="write the epoch of the current attempt into it, followed by a newline",
        )
    if epoch < int(text):
        raise StaleEpochError(
            f"{root}: epoch {epoch} is stale: the repository belongs to epoch {int(text)}",
            hint="a newer attempt of this phase has taken over; this one has nothing left to do",
        )


def sync_directory(path: Path) -> None:
    """Make renames inside a directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
