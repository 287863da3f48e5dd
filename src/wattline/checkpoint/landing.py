"""Landing: where do the parts of an object lie that arrives over a network, until all are there?

Finer parts than a folder's own: what is on its way when a link is cut is sent again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from pathlib import Path

from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, StorageError, storage_errors

_LEAST_PART_BYTES, _MOST_PART_BYTES = 2**14, 2**20
# Parts on their way when a link is cut are sent again: of this many, two dozen streams lose about 1 %.
_WORTHWHILE_PARTS = 2048
_HASHED_BYTES = 2**22


class Landing:
    """An object that arrives in parts: a file as long as the whole and a map, a byte for each part.

    A part is marked when it is on disk, so a crash loses only what was on its way. Parts are kept under a
    shared lock on the map and the whole is completed under an exclusive one: what was verified is seen.
    """

    def __init__(self, root: Path, name: str, size_bytes: int, digest: str) -> None:
        self.part_bytes = part_bytes(size_bytes)
        self._size_bytes, self._digest, self._name = size_bytes, digest, name
        self._count = -(-size_bytes // self.part_bytes)
        key = blake3(f"{name}\0{size_bytes}\0{digest}\0{self.part_bytes}".encode()).hexdigest()[:32]
        self._target = root / name
        self._data, self._map = root / ".arriving" / key, root / ".arriving" / f"{key}.map"

    def begin(self) -> Sequence[tuple[int, int]]:
        """Runs of parts that are not there yet: the first, and how many."""
        if self._is_whole():
            return []
        with self._storing():
            self._data.parent.mkdir(parents=True, exist_ok=True)
            self._target.parent.mkdir(parents=True, exist_ok=True)
            with _opened(self._data.parent, os.O_RDONLY | os.O_DIRECTORY) as folder:
                fcntl.flock(folder, fcntl.LOCK_EX)  # a sweep holds it too
                arrived = self._begin()
        runs = groupby(range(self._count), key=lambda number: arrived[number : number + 1] != b"\1")
        missing = [list(numbers) for is_missing, numbers in runs if is_missing]
        return [(numbers[0], len(numbers)) for numbers in missing]

    def put(self, number: int, data: bytes) -> None:
        start = number * self.part_bytes
        if number >= self._count or len(data) != min(self.part_bytes, self._size_bytes - start):
            raise CheckpointError(f"part {number} of {self._name} has {len(data)} bytes")
        with self._locked(fcntl.LOCK_SH) as parts:
            if parts is not None:
                with _opened(self._data, os.O_WRONLY) as descriptor:
                    os.pwrite(descriptor, data, start)
                    os.fdatasync(descriptor)
                os.pwrite(parts, b"\1", number)

    def finish(self) -> None:
        with self._locked(fcntl.LOCK_EX) as parts:
            if parts is None:
                return
            absent = self._count - os.pread(parts, self._count, 0).count(b"\1")
            if absent:
                raise StorageError(f"{self._name}: {absent} parts have not arrived")
            matches = _hash(self._data) == self._digest
            if matches:
                self._data.rename(self._target)
                _sync(self._target.parent)
            else:
                self._data.unlink()
            self._map.unlink()
        if not matches:
            raise CheckpointError(f"{self._name}: what arrived is not what was sent")

    def _begin(self) -> bytes:
        if not self._data.exists():
            if shutil.disk_usage(self._data.parent).free < self._size_bytes:
                raise StorageError(f"{self._name}: there is no room for {self._size_bytes} bytes")
            self._map.unlink(missing_ok=True)  # of one that was completed just before a crash
        for path, length in ((self._data, self._size_bytes), (self._map, self._count)):
            with path.open("ab") as file:
                file.truncate(length)
            os.utime(path)
        _sync(self._data.parent)
        return self._map.read_bytes()

    def _is_whole(self) -> bool:
        with self._storing():
            try:
                same_size = self._target.stat(follow_symlinks=False).st_size == self._size_bytes
            except (FileNotFoundError, NotADirectoryError):
                return False
            return same_size and _hash(self._target) == self._digest

    @contextmanager
    def _locked(self, how: int) -> Iterator[int | None]:
        """The map; None where there is none any more because the whole is there."""
        with self._storing():
            try:
                with _opened(self._map, os.O_RDWR) as parts:
                    fcntl.flock(parts, how)
                    if os.fstat(parts).st_nlink:
                        yield parts
                        return
            except FileNotFoundError:
                pass
            if not self._is_whole():
                raise StorageError(f"{self._name}: is not arriving any more, it was swept or differed")
            yield None

    def _storing(self) -> AbstractContextManager[None]:
        return storage_errors(f"{self._name}: could not be kept")


def part_bytes(size_bytes: int) -> int:
    """Small enough that little is lost on a cut, large enough that a huge object is not all overhead."""
    wanted = 1 << (size_bytes // _WORTHWHILE_PARTS).bit_length()
    return max(_LEAST_PART_BYTES, min(_MOST_PART_BYTES, wanted))


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _hash(path: Path) -> str:
    digest, start = blake3(), 0
    with _opened(path, os.O_RDONLY) as descriptor:
        while piece := os.pread(descriptor, _HASHED_BYTES, start):
            digest.update(piece)
            start += len(piece)
        os.fsync(descriptor)
    return digest.hexdigest()


def _sync(directory: Path) -> None:
    """Make a rename inside a directory survive a power cut."""
    with _opened(directory, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        os.fsync(descriptor)
