"""A folder as a store: how does a file appear all at once, or not at all?

It is written under a name nobody reads, in `.writing/`, forced to disk, and renamed. Its writer holds a
lock on it all along, which is how a sweep tells it from a dead writer's. What arrives in parts lies in
`.arriving/`, a file as long as the whole with a map of its parts beside it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from wattline.checkpoint.errors import CheckpointError, StorageError, storage_errors
from wattline.checkpoint.stores.contract import MissingError, Stored
from wattline.checkpoint.stores.direct import DirectWriter
from wattline.checkpoint.stores.files import SAFE, locked_folder, opened, sync
from wattline.checkpoint.stores.landing import Landing, keep_part
from wattline.checkpoint.stores.names import check_arrival, check_name, check_prefix, check_range, is_name

_WRITING = ".writing"
_ARRIVING = ".arriving"
_LOCK = ".lock"
_PART_BYTES = 2**20
_READ_BYTES = 2**22
_NOT_THERE = (FileNotFoundError, NotADirectoryError)
_FOR_GOOD = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG})


class LocalStore:
    """Implements Store in a folder, which is made when something is first written."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()  # a script that changes its folder keeps its store
        self._durable: set[Path] = set()

    streams = 8

    @property
    def address(self) -> str:
        return str(self._root)

    def list(self, prefix: str = "") -> Sequence[Stored]:
        top = self._root / check_prefix(prefix).rpartition("/")[0]
        found = []
        with storage_errors(f"{self._root}: cannot be listed"):
            if self._root.exists() and not self._root.is_dir():  # a mistyped address, not an empty store
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            for directory, folders, files in os.walk(top, onerror=_raise_unless_missing):
                folders[:] = [folder for folder in folders if is_name(folder)]  # not the volume's lost+found
                for file in files:
                    path = Path(directory, file)
                    name = path.relative_to(self._root).as_posix()
                    if not name.startswith(prefix) or not is_name(name):
                        continue
                    with suppress(FileNotFoundError):  # it went meanwhile
                        known = path.stat(follow_symlinks=False)
                        if stat.S_ISREG(known.st_mode):
                            found.append(Stored(name, known.st_size, known.st_mtime))
        return sorted(found, key=lambda stored: stored.name)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        path = self._root / check_name(name)
        check_range(name, start, length)
        with _reading(path), opened(path, os.O_RDONLY) as descriptor:
            known = os.fstat(descriptor)
            if stat.S_ISDIR(known.st_mode):
                raise MissingError(f"{path}: there is no such object")
            if not stat.S_ISREG(known.st_mode):
                raise CheckpointError(f"{path} is not a regular file")
            left = max(0, known.st_size - start)
            left = left if length is None else min(left, length)
            pieces = []
            while left > 0 and (data := os.pread(descriptor, min(left, _READ_BYTES), start)):
                pieces.append(data)
                start, left = start + len(data), left - len(data)
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def put(self, name: str, data: bytes, *, replace: bool) -> bool:
        with self.create(name) as writing:
            writing.write(memoryview(data))
            if not replace:
                return writing.finish_as_first()
            writing.finish()
            return True

    @contextmanager
    def create(self, name: str) -> Iterator[_Writing]:
        target = self._root / check_name(name)
        with storage_errors(f"{target}: could not be saved"):
            self._make(target.parent)
            writing = _Writing(self._make(self._root / _WRITING), target)
        try:
            yield writing
        finally:
            writing.close()

    def arrive(self, name: str, size_bytes: int, blake3: str, *, part_bytes: int = _PART_BYTES) -> Landing:
        arriving = self.arriving(name, size_bytes, blake3, part_bytes=part_bytes)
        with storage_errors(f"{self._root / name}: cannot arrive"):
            self._make((self._root / name).parent)
            self._make(self._root / _ARRIVING)
        arriving.begin()
        return arriving

    def arriving(self, name: str, size_bytes: int, blake3: str, *, part_bytes: int) -> Landing:
        """One that was begun before."""
        check_arrival(name, size_bytes, blake3)
        return Landing(self._root / _ARRIVING, self._root / name, name, size_bytes, blake3, part_bytes)

    def keep_part(self, key: str, number: int, data: memoryview) -> bool:
        """Of what arrives under that key; False where nothing does."""
        with storage_errors(f"{self._root}: a part could not be kept"):
            return keep_part(self._root / _ARRIVING, key, number, data)

    def delete(self, name: str) -> None:
        path = self._root / check_name(name)
        with storage_errors(f"{path}: cannot be deleted"), suppress(*_NOT_THERE, IsADirectoryError):
            path.unlink()
            sync(path.parent)  # else a pack may be gone after a power cut, and its manifest back

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with storage_errors(f"{self._root}: cannot be locked"):
            self._make(self._root)
            descriptor = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | SAFE, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except BaseException:
                os.close(descriptor)
                raise
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child that was forked meanwhile has it open still
            os.close(descriptor)

    def sweep(self, older_than_seconds: float) -> int:
        moment = time.time() - older_than_seconds
        freed_bytes = 0
        with storage_errors(f"{self._root}: cannot be swept"):
            for path in (self._root / _WRITING).glob("*"):
                freed_bytes += _remove_if_dead((path,), moment)
            arriving = self._root / _ARRIVING
            with suppress(FileNotFoundError), locked_folder(arriving):
                for key in {path.name.removesuffix(".map") for path in arriving.iterdir()}:
                    freed_bytes += _remove_if_dead((arriving / f"{key}.map", arriving / key), moment)
        return freed_bytes

    def _make(self, folder: Path) -> Path:
        """A folder that is still there after a power cut, or what is renamed into it would not be."""
        above = (folder, *folder.parents)
        missing = [each for each in above if not each.is_dir()]
        folder.mkdir(parents=True, exist_ok=True)
        inside = above[
            : above.index(self._root)
        ]  # made by another process, perhaps, that has not come so far
        for each in dict.fromkeys([*missing, *inside]):
            if each in missing or each not in self._durable:
                sync(each.parent)
                self._durable.add(each)
        return folder


class _Writing:
    def __init__(self, folder: Path, target: Path) -> None:
        self._target = target
        self._open = True
        while True:
            self._path = folder / secrets.token_hex(8)
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE, 0o666)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            if os.fstat(self._descriptor).st_nlink:
                self._disk = DirectWriter(self._descriptor)
                return
            os.close(self._descriptor)  # a sweep was quicker than the lock

    def write(self, data: memoryview) -> None:
        self._require_open()
        with storage_errors(f"{self._target}: could not be saved"):
            self._disk.write(data)

    def finish(self) -> None:
        self._require_open()
        with storage_errors(f"{self._target}: could not be saved"):
            self._disk.sync()
            self._path.rename(self._target)
            self._open = False
            sync(self._target.parent)

    def finish_as_first(self) -> bool:
        """Unless there is one already."""
        self._require_open()
        with storage_errors(f"{self._target}: could not be saved"):
            self._disk.sync()
            try:
                os.link(self._path, self._target)
                first = True
            except FileExistsError:
                first = False
            self._open = False
            sync(self._target.parent)  # also for the other's: whoever is told that it is there counts on it
        return first

    def close(self) -> None:
        self._open = False
        self._disk.close()
        os.close(self._descriptor)
        with suppress(OSError):  # what cannot go now is swept later, and must not hide what went wrong
            self._path.unlink()

    def _require_open(self) -> None:
        if not self._open:  # the descriptor is what all can see by now, or somebody else's file
            raise CheckpointError(f"{self._target} is not being written any more")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except _NOT_THERE as error:
        raise MissingError(f"{path}: there is no such object") from error
    except OSError as error:
        kind = CheckpointError if error.errno in _FOR_GOOD else StorageError
        raise kind(f"{path}: cannot be read: {error.strerror}") from error


def _remove_if_dead(paths: tuple[Path, ...], moment: float) -> int:
    """Files that belong together go when none was touched since, and nobody holds the lock on the first."""
    known = {}
    for path in paths:
        with suppress(FileNotFoundError):
            known[path] = path.stat(follow_symlinks=False)
    if not known or max(one.st_mtime for one in known.values()) > moment:
        return 0
    try:
        with opened(next(iter(known)), os.O_RDONLY) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in known:
                path.unlink(missing_ok=True)
    except (BlockingIOError, FileNotFoundError, PermissionError, IsADirectoryError):
        return 0  # alive, gone, or not this user's: what cannot be swept must not keep others from saving
    return sum(one.st_size for one in known.values() if one.st_nlink == 1)


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, _NOT_THERE):
        raise error
