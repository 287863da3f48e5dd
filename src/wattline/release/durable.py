"""How does a change reach the disk, so that a crash leaves either the old or the new and never a mixture?"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file; readers see the old one or the new one."""
    beside = path.with_name(f".{path.name}.new")  # one writer at a time, so one left by a crash is replaced
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    beside.replace(path)
    sync_folder(path.parent)


def point(link: Path, target: str) -> None:
    """Make a symbolic link lead elsewhere in one step."""
    beside = link.with_name(f".{link.name}.new")
    beside.unlink(missing_ok=True)
    beside.symlink_to(target)
    beside.replace(link)
    sync_folder(link.parent)


def move_folder(source: Path, target: Path) -> None:
    """Give a finished folder its name."""
    for folder, _, _ in os.walk(source, topdown=False):
        sync_folder(Path(folder))
    source.rename(target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a folder; the kernel lets go when the holder dies."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
