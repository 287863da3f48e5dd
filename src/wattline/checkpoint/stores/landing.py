"""Landing: how do parts that arrive in any order, over several tries, become a whole object in a folder?

They lie in a folder apart, in a file as long as the whole, with a map beside it: a byte for each part.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, StorageError, storage_errors
from wattline.checkpoint.stores.files import locked_folder, opened, sync, write_all

_KEY = re.compile(r"[0-9a-f]{32}-([1-9][0-9]{0,8})", re.ASCII)
_HASHED_BYTES = 2**22


class Landing:
    """Implements Arriving in a folder.

    A part is marked when it is on disk, so a crash loses only what was on its way. Parts are kept under a
    shared lock on the map, and the whole is verified and shown under an exclusive one: nothing changes it in
    between. Once the whole is there, parts that come late and a second finish find it so and change nothing.
    """

    def __init__(
        self, folder: Path, target: Path, name: str, size_bytes: int, digest: str, part_bytes: int
    ) -> None:
        self._folder, self._target = folder, target
        self._size_bytes, self._digest, self.part_bytes = size_bytes, digest, part_bytes
        known = blake3(f"{name}\0{size_bytes}\0{digest}".encode()).hexdigest()[:32]
        self.key = f"{known}-{part_bytes}"
        self._data, self._map = folder / self.key, folder / f"{self.key}.map"
        self._count = -(-size_bytes // part_bytes)

    def begin(self) -> None:
        """Make room for it, unless it is there in part or as a whole."""
        with storage_errors(f"{self._target}: cannot arrive"):
            if self._is_whole():
                return
            with locked_folder(self._folder):  # a sweep holds it too
                if not self._data.exists():
                    if shutil.disk_usage(self._folder).free < self._size_bytes:
                        raise StorageError(f"{self._target}: there is no room for {self._size_bytes} bytes")
                    self._map.unlink(missing_ok=True)  # it tells of a file that was shown, or lost in a crash
                for path, length in ((self._data, self._size_bytes), (self._map, self._count)):
                    with path.open("ab") as file:
                        file.truncate(length)
                    os.utime(path)  # a sweep sees that somebody came back to it
                sync(self._folder)

    @property
    def missing(self) -> Sequence[int]:
        with self._locked(fcntl.LOCK_SH) as parts:
            return [] if parts is None else self._missing(parts)

    def put(self, number: int, data: memoryview) -> None:
        with storage_errors(f"{self._target}: a part could not be kept"):
            if not keep_part(self._folder, self.key, number, data):
                self._require_whole()

    def finish(self) -> None:
        with self._locked(fcntl.LOCK_EX) as parts:
            if parts is None:
                return
            if missing := self._missing(parts):
                raise StorageError(f"{self._target}: {len(missing)} parts have not arrived")
            matches = _hash(self._data) == self._digest
            if matches:
                self._data.rename(self._target)
                sync(self._target.parent)
                self._map.unlink()
            else:
                self._map.unlink()
                self._data.unlink()
        if not matches:
            raise CheckpointError(
                f"{self._target}: what arrived is not what was sent",
                hint="verify the source, and send it again",
            )

    def _missing(self, parts: int) -> Sequence[int]:
        arrived = os.pread(parts, self._count, 0)
        return [number for number in range(self._count) if arrived[number : number + 1] != b"\1"]

    @contextmanager
    def _locked(self, how: int) -> Iterator[int | None]:
        """The map; None where there is none any more because the whole is there."""
        with storage_errors(f"{self._target}: a part could not be kept"):
            with _held_map(self._map, how) as parts:
                if parts is not None:
                    yield parts
                    return
            self._require_whole()
            yield None

    def _require_whole(self) -> None:
        if not self._is_whole():
            raise StorageError(
                f"{self._target} is not arriving any more", hint="it was swept or differed; ask for it again"
            )

    def _is_whole(self) -> bool:
        try:
            same_size = self._target.stat(follow_symlinks=False).st_size == self._size_bytes
            return same_size and _hash(self._target) == self._digest
        except (FileNotFoundError, NotADirectoryError):
            return False


def keep_part(folder: Path, key: str, number: int, data: memoryview) -> bool:
    """Of what arrives under this key in the folder; False where nothing does, any more or at all."""
    known = _KEY.fullmatch(key)
    if known is None:
        raise CheckpointError(f"{key[:80]!r} is no key of an arrival")
    start = number * int(known[1])
    with _held_map(folder / f"{key}.map", fcntl.LOCK_SH) as parts:
        if parts is None:
            return False
        with opened(folder / key, os.O_WRONLY) as descriptor:
            left_bytes = os.fstat(descriptor).st_size - start
            if not 0 <= start < start + left_bytes or data.nbytes != min(int(known[1]), left_bytes):
                raise CheckpointError(f"part {number} has {data.nbytes} bytes, which is not what it has")
            write_all(descriptor, data, at=start)
            os.fdatasync(descriptor)
        write_all(parts, memoryview(b"\1"), at=number)
    return True


@contextmanager
def _held_map(path: Path, how: int) -> Iterator[int | None]:
    """None where it is gone, or went while its lock was waited for."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        fcntl.flock(descriptor, how)
        yield descriptor if os.fstat(descriptor).st_nlink else None
    finally:
        os.close(descriptor)


def _hash(path: Path) -> str:
    """Of what is on disk."""
    digest, start = blake3(), 0
    with opened(path, os.O_RDONLY) as descriptor:
        while piece := os.pread(descriptor, _HASHED_BYTES, start):
            digest.update(piece)
            start += len(piece)
        os.fsync(descriptor)
    return str(digest.hexdigest())
