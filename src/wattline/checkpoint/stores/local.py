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

from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, StorageError, storage_errors
from wattline.checkpoint.stores.contract import MissingError, Stored
from wattline.checkpoint.stores.names import check_arrival, check_name, check_prefix, check_range, is_name

_WRITING = ".writing"
_ARRIVING = ".arriving"
_LOCK = ".lock"
_PART_BYTES = 2**20
_READ_BYTES = 2**22
_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no link out of the store, no pipe that never answers
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
        with _reading(path), _opened(path, os.O_RDONLY) as descriptor:
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

    def arrive(self, name: str, size_bytes: int, blake3: str) -> _Arriving:
        check_arrival(name, size_bytes, blake3)
        target = self._root / name
        with storage_errors(f"{target}: cannot arrive"):
            self._make(target.parent)
            return _Arriving(self._make(self._root / _ARRIVING), target, name, size_bytes, blake3)

    def delete(self, name: str) -> None:
        path = self._root / check_name(name)
        with storage_errors(f"{path}: cannot be deleted"), suppress(*_NOT_THERE, IsADirectoryError):
            path.unlink()
            _sync(path.parent)  # else a pack may be gone after a power cut, and its manifest back

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with storage_errors(f"{self._root}: cannot be locked"):
            self._make(self._root)
            descriptor = os.open(self._root / _LOCK, os.O_RDWR | os.O_CREAT | _SAFE, 0o666)
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
            with suppress(FileNotFoundError), _locked_folder(arriving):
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
                _sync(each.parent)
                self._durable.add(each)
        return folder


class _Writing:
    def __init__(self, folder: Path, target: Path) -> None:
        self._target = target
        self._open = True
        while True:
            self._path = folder / secrets.token_hex(8)
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE, 0o666)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            if os.fstat(self._descriptor).st_nlink:
                return
            os.close(self._descriptor)  # a sweep was quicker than the lock

    def write(self, data: memoryview) -> None:
        self._require_open()
        with storage_errors(f"{self._target}: could not be saved"):
            _write_all(self._descriptor, data)

    def finish(self) -> None:
        self._require_open()
        with storage_errors(f"{self._target}: could not be saved"):
            os.fsync(self._descriptor)
            self._path.rename(self._target)
            self._open = False
            _sync(self._target.parent)

    def finish_as_first(self) -> bool:
        """Unless there is one already."""
        self._require_open()
        with storage_errors(f"{self._target}: could not be saved"):
            os.fsync(self._descriptor)
            try:
                os.link(self._path, self._target)
                first = True
            except FileExistsError:
                first = False
            self._open = False
            _sync(self._target.parent)  # also for the other's: whoever is told that it is there counts on it
        return first

    def close(self) -> None:
        self._open = False
        os.close(self._descriptor)
        with suppress(OSError):  # what cannot go now is swept later, and must not hide what went wrong
            self._path.unlink()

    def _require_open(self) -> None:
        if not self._open:  # the descriptor is what all can see by now, or somebody else's file
            raise CheckpointError(f"{self._target} is not being written any more")


class _Arriving:
    """The map is a byte for each part, written after the part is on disk: a crash in between loses one part.

    Parts are kept under a shared lock on the map, and the whole is verified and shown under an exclusive one:
    nothing changes it in between.
    """

    part_bytes = _PART_BYTES

    def __init__(self, folder: Path, target: Path, name: str, size_bytes: int, digest: str) -> None:
        self._target, self._size_bytes, self._digest = target, size_bytes, digest
        key = blake3(f"{name}\0{size_bytes}\0{digest}".encode()).hexdigest()[:32]
        self._data, self._map = folder / key, folder / f"{key}.map"
        self._count = -(-size_bytes // _PART_BYTES)
        with _locked_folder(folder):
            if not self._data.exists():  # the map, if any, tells of a file that was shown, or lost in a crash
                self._map.unlink(missing_ok=True)
            for path, length in ((self._data, size_bytes), (self._map, self._count)):
                with path.open("ab") as file:
                    file.truncate(length)
                os.utime(path)  # a sweep sees that somebody came back to it
            _sync(folder)

    @property
    def missing(self) -> Sequence[int]:
        with self._locked(fcntl.LOCK_SH) as parts:
            return self._missing(parts)

    def put(self, number: int, data: memoryview) -> None:
        start = number * _PART_BYTES
        if not 0 <= number < self._count or data.nbytes != min(_PART_BYTES, self._size_bytes - start):
            raise CheckpointError(f"part {number} of {self._target.name} has {data.nbytes} bytes")
        with self._locked(fcntl.LOCK_SH) as parts:
            with _opened(self._data, os.O_WRONLY) as descriptor:
                _write_all(descriptor, data, at=start)
                os.fdatasync(descriptor)
            _write_all(parts, memoryview(b"\1"), at=number)

    def finish(self) -> None:
        with self._locked(fcntl.LOCK_EX) as parts:
            if missing := self._missing(parts):
                raise CheckpointError(f"{self._target}: {len(missing)} parts have not arrived")
            with _opened(self._data, os.O_RDONLY) as descriptor:
                matches = _hash(descriptor) == self._digest
                os.fsync(descriptor)
            if matches:
                self._data.rename(self._target)
                _sync(self._target.parent)
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
    def _locked(self, how: int) -> Iterator[int]:
        """The map, while it is the map of what still arrives."""
        with storage_errors(f"{self._target}: a part could not be kept"):
            try:
                with _opened(self._map, os.O_RDWR) as parts:
                    fcntl.flock(parts, how)
                    if os.fstat(parts).st_nlink:
                        yield parts
                        return
            except FileNotFoundError:
                pass
            raise StorageError(
                f"{self._target} is not arriving any more", hint="it was completed or swept; ask for it again"
            )


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags | _SAFE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except _NOT_THERE as error:
        raise MissingError(f"{path}: there is no such object") from error
    except OSError as error:
        kind = CheckpointError if error.errno in _FOR_GOOD else StorageError
        raise kind(f"{path}: cannot be read: {error.strerror}") from error


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """What is begun in it and what is swept from it wait for each other."""
    with _opened(folder, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _write_all(descriptor: int, data: memoryview, *, at: int | None = None) -> None:
    data = data.cast("B")
    while data:  # the operating system may take less than it was given
        taken = os.write(descriptor, data) if at is None else os.pwrite(descriptor, data, at)
        data, at = data[taken:], None if at is None else at + taken


def _hash(descriptor: int) -> str:
    digest = blake3()
    start = 0
    while piece := os.pread(descriptor, _READ_BYTES, start):
        digest.update(piece)
        start += len(piece)
    return str(digest.hexdigest())


def _sync(directory: Path) -> None:
    """Make renames inside a directory survive a power cut."""
    with _opened(directory, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        os.fsync(descriptor)


def _remove_if_dead(paths: tuple[Path, ...], moment: float) -> int:
    """Files that belong together go when none was touched since, and nobody holds the lock on the first."""
    known = {}
    for path in paths:
        with suppress(FileNotFoundError):
            known[path] = path.stat(follow_symlinks=False)
    if not known or max(one.st_mtime for one in known.values()) > moment:
        return 0
    try:
        with _opened(next(iter(known)), os.O_RDONLY) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in known:
                path.unlink(missing_ok=True)
    except (BlockingIOError, FileNotFoundError, PermissionError, IsADirectoryError):
        return 0  # alive, gone, or not this user's: what cannot be swept must not keep others from saving
    return sum(one.st_size for one in known.values() if one.st_nlink == 1)


def _raise_unless_missing(error: OSError) -> None:
    if not isinstance(error, _NOT_THERE):
        raise error
