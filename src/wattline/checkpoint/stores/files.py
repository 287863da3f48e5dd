"""Files: what does it take that a file is what it should be, and still there after a power cut?"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no link out of the store, no pipe that never answers


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | SAFE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """What is begun in it and what is swept from it wait for each other."""
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def write_all(descriptor: int, data: memoryview, *, at: int | None = None) -> None:
    data = data.cast("B")
    while data:  # the operating system may take less than it was given
        taken = os.write(descriptor, data) if at is None else os.pwrite(descriptor, data, at)
        data, at = data[taken:], None if at is None else at + taken


def sync(directory: Path) -> None:
    """Make renames inside a directory survive a power cut."""
    with opened(directory, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        os.fsync(descriptor)
