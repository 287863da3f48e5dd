"""Where do artifacts and bundles lie, and are they still what they were?

Each file is named by the SHA-256 of its content: `<root>/sha256/ab/cdef…`. A file appears whole or not at
all (written beside, synced, renamed) and read-only. What leaves the store is always a copy: through a hard
link, a script that writes to its own file would change the store. Copies are hashed on the way out, so
damage on the disk is found before it is used.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from wattline.errors import UnavailableError
from wattline.store.digest import Digest
from wattline.store.errors import StoreRefusedError

_CHUNK_BYTES = 1024 * 1024


class ObjectStore:
    """Content-addressed files under one directory, which is made when first needed."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put_file(self, path: Path) -> Digest:
        """Store a copy of a regular file; a file that changes meanwhile is stored as it was read."""
        with _reporting(f"file {path}"), _open_regular(path) as source:
            return self._put(_chunks(source))

    def put_bytes(self, content: bytes) -> Digest:
        return self.put_chunks([content])

    def put_chunks(self, chunks: Iterable[bytes]) -> Digest:
        with _reporting(f"object store {self._root}"):
            return self._put(chunks)

    def list(self) -> Iterator[tuple[Digest, int]]:
        """Every object with its size in bytes, by name."""
        with _reporting(f"object store {self._root}"):
            for path in sorted((self._root / "sha256").glob("[0-9a-f][0-9a-f]/*")):
                yield Digest(f"sha256:{path.parent.name}{path.name}"), path.stat().st_size

    def read(self, digest: str) -> Iterator[bytes]:
        """An object chunk by chunk; raises after the last one if it is damaged."""
        with self.open(digest) as source, _reporting(f"object {digest}"):
            yield from _checked(source, digest)

    def arrive(self, digest: str) -> Arriving:
        """Take in content that comes piece by piece and must be what the digest names."""
        with _reporting(f"object store {self._root}"):
            incoming = self._root / "incoming"
            _make_directory(incoming)
            return Arriving(Digest(digest), incoming, self._place)

    def path(self, digest: str) -> Path:
        """Where an object lies, or would."""
        digest = Digest(digest)
        return self._root / "sha256" / digest.hex[:2] / digest.hex[2:]

    def open(self, digest: str) -> BinaryIO:
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError:
            raise UnavailableError(
                f"object {digest} is not in {self._root}",
                hint="run what makes it again, or copy it from another site",
            ) from None
        except OSError as error:
            raise UnavailableError(
                f"object {digest} in {self._root}: {error.strerror}", hint="check the disk and permissions"
            ) from error

    def verify(self, digest: str) -> None:
        """Read an object whole; raise if it is missing or damaged."""
        for _ in self.read(digest):
            pass

    def materialise(self, digest: str, target: Path, mode: int = 0o644) -> None:
        """Put a copy where a script may have it, replacing what is there."""
        if mode & ~0o777:
            raise StoreRefusedError(f"file mode: permission bits only (0 to 0o777), got {mode:#o}")
        with self.open(digest) as source, _reporting(f"file {target}"):
            _write_whole(_checked(source, digest), target.parent, lambda _: target, mode)

    def _put(self, chunks: Iterable[bytes]) -> Digest:
        """Written again even if it is there: that mends a damaged one, and the digest is known only after."""
        incoming = self._root / "incoming"
        _make_directory(incoming)
        return _write_whole(chunks, incoming, self._place, 0o444)

    def _place(self, digest: Digest) -> Path:
        path = self.path(digest)
        _make_directory(path.parent)
        return path


class Arriving:
    """One object on its way in: written beside, and among the objects only once it is whole and right."""

    def __init__(self, digest: Digest, incoming: Path, place: Callable[[Digest], Path]) -> None:
        self._digest, self._place = digest, place
        handle, name = tempfile.mkstemp(dir=incoming, prefix=".incoming-")
        self._file, self._path = os.fdopen(handle, "wb"), Path(name)
        self._hasher = sha256()

    def write(self, chunk: bytes) -> None:
        with _reporting(f"object {self._digest}"):
            self._hasher.update(chunk)
            self._file.write(chunk)

    def finish(self) -> bool:
        """Keep it if it is what was announced; False, and nothing is kept, if it is something else."""
        if self._hasher.hexdigest() != self._digest.hex:
            self.drop()
            return False
        with _reporting(f"object {self._digest}"):
            self._file.flush()
            os.fchmod(self._file.fileno(), 0o444)
            os.fsync(self._file.fileno())
            self._file.close()
            target = self._place(self._digest)
            self._path.replace(target)
            _sync_directory(target.parent)
        return True

    def drop(self) -> None:
        """Forget what came; may be called at any time."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def _write_whole(
    chunks: Iterable[bytes], directory: Path, target_of: Callable[[Digest], Path], mode: int
) -> Digest:
    """Write a file so that its name never stands for half of it, also if the machine stops."""
    handle, name = tempfile.mkstemp(dir=directory, prefix=".incoming-")
    temporary = Path(name)
    hasher = sha256()
    try:
        with os.fdopen(handle, "wb") as file:
            for chunk in chunks:
                hasher.update(chunk)
                file.write(chunk)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        digest = Digest(f"sha256:{hasher.hexdigest()}")
        target = target_of(digest)
        temporary.replace(target)
        _sync_directory(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return digest


def _checked(source: BinaryIO, digest: str) -> Iterator[bytes]:
    """The chunks of an object; raise after the last one if they are not what the digest names."""
    hasher = sha256()
    for chunk in _chunks(source):
        hasher.update(chunk)
        yield chunk
    if hasher.hexdigest() != Digest(digest).hex:
        raise UnavailableError(
            f"object {digest} is damaged: its content has the hash {hasher.hexdigest()}",
            hint="put the original again, or copy it from another site; the store then mends itself",
        )


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK_BYTES):
        yield chunk


def _open_regular(path: Path) -> BinaryIO:
    """Open without blocking: a pipe left among the artifacts must not stop the capture."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise StoreRefusedError(f"file {path}: only regular files can be stored", hint="name a file")
    return os.fdopen(handle, "rb")


def _make_directory(path: Path) -> None:
    """Make a directory that survives the machine: its name is an entry of its parent, which is synced."""
    if path.is_dir():
        return
    _make_directory(path.parent)
    path.mkdir(exist_ok=True)
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _reporting(subject: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"{subject}: {error.strerror or error}" + (f" ({error.filename})" if error.filename else ""),
            hint="check that the path exists, that this user may use it, and that the disk has room",
        ) from error
