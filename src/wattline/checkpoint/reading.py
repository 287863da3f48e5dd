"""Reading: is this checkpoint whole, and what does it hold?"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from blake3 import blake3

from wattline.checkpoint.errors import CheckpointError, NothingUsableError, Rejected
from wattline.checkpoint.manifest import MAX_MANIFEST_BYTES, Manifest, NewerSchemaError, read_manifest
from wattline.checkpoint.repository import MANIFEST, TENSORS, checkpoint_name, list_checkpoints
from wattline.checkpoint.tree import Array, TensorReference, decode

CHUNK_BYTES = 4 * 2**20

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A verified checkpoint, and the newer ones that were passed over to reach it."""

    path: Path
    step: int
    epoch: int
    lineage: Mapping[str, str]
    tree: Any
    digest: str
    total_bytes: int
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True)
class OpenCheckpoint:
    """A checkpoint with its files held open: pruning cannot take it away from under its reader."""

    path: Path
    raw_manifest: bytes
    manifest: Manifest
    digest: str
    tensors: io.BufferedReader

    @property
    def total_bytes(self) -> int:
        return len(self.raw_manifest) + self.manifest.tensors_bytes

    def close(self) -> None:
        self.tensors.close()


def restore(root: Path) -> Restored | None:
    """The newest checkpoint that verifies; None when there is none at all."""
    found = open_newest(root, read_tree)
    if found is None:
        return None
    opened, tree, rejected = found
    with closing(opened):
        return Restored(
            path=opened.path,
            step=opened.manifest.step,
            epoch=opened.manifest.epoch,
            lineage=opened.manifest.lineage,
            tree=tree,
            digest=opened.digest,
            total_bytes=opened.total_bytes,
            rejected=rejected,
        )


def verify(path: Path) -> None:
    """Read every byte and compare every hash; raises CheckpointError at the first that differs."""
    with closing(open_checkpoint(path)) as opened:
        verify_tensors(opened)


def open_newest(
    root: Path, read: Callable[[OpenCheckpoint], _Read]
) -> tuple[OpenCheckpoint, _Read, tuple[Rejected, ...]] | None:
    """The newest checkpoint whose opening and reading find no fault, left open, with what was read."""
    rejected: list[Rejected] = []
    for entry in list_checkpoints(root):
        with ExitStack() as stack:
            try:
                opened = stack.enter_context(closing(open_checkpoint(entry.path)))
                result = read(opened)
            except NewerSchemaError:
                raise
            except CheckpointError as error:
                rejected.append(Rejected(entry.path, error.message))
                continue
            stack.pop_all()
            return opened, result, tuple(rejected)
    if rejected:
        raise NothingUsableError(root, tuple(rejected))
    return None


def open_checkpoint(path: Path, *, named: bool = True) -> OpenCheckpoint:
    """Open and check all but the tensors' hashes. A draft has no name of its own yet, hence `named`."""
    with _faults_of(path), ExitStack() as stack:
        with _open_regular(path / MANIFEST) as file:
            raw = file.read(MAX_MANIFEST_BYTES + 1)
        if len(raw) > MAX_MANIFEST_BYTES:
            raise CheckpointError(f"the manifest is larger than {MAX_MANIFEST_BYTES} bytes")
        manifest, digest = read_manifest(raw)
        if named and path.name != checkpoint_name(manifest.step, manifest.epoch):
            raise CheckpointError(f"the manifest is of step {manifest.step}, epoch {manifest.epoch}")
        tensors = stack.enter_context(_open_regular(path / TENSORS))
        size = os.fstat(tensors.fileno()).st_size
        if size != manifest.tensors_bytes:
            raise CheckpointError(f"{TENSORS} has {size} bytes instead of {manifest.tensors_bytes}")
        stack.pop_all()
        return OpenCheckpoint(path, raw, manifest, digest, tensors)


def read_tree(opened: OpenCheckpoint) -> Any:
    """The tree with its arrays, each verified as it is read."""
    return _walk(opened, _read_array)


def verify_tensors(opened: OpenCheckpoint) -> None:
    """The same walk without holding more than a chunk in memory."""
    _walk(opened, _hash_array)


def _walk(
    opened: OpenCheckpoint, read: Callable[[TensorReference, io.BufferedReader], tuple[Array, str]]
) -> Any:
    """Tensors must tile the file in the order of the tree: no gap escapes the hashes, none overlaps."""
    position = 0

    def get(reference: TensorReference) -> Array:
        nonlocal position
        if reference.offset != position or position + reference.nbytes > opened.manifest.tensors_bytes:
            raise CheckpointError(f"a tensor of {reference.nbytes} bytes does not lie at {position}")
        position += reference.nbytes
        array, digest = read(reference, opened.tensors)
        if digest != reference.blake3:
            raise CheckpointError(
                f"the tensor at byte {reference.offset} is altered: its hash does not match"
            )
        return array

    with _faults_of(opened.path):
        opened.tensors.seek(0)
        tree = decode(opened.manifest.tree, get)
        if position != opened.manifest.tensors_bytes:
            raise CheckpointError(f"{opened.manifest.tensors_bytes - position} bytes belong to no tensor")
    return tree


def _read_array(reference: TensorReference, file: io.BufferedReader) -> tuple[Array, str]:
    try:
        array = np.empty(reference.shape, dtype=reference.dtype)
    except (ValueError, MemoryError) as error:
        raise CheckpointError(f"a tensor of shape {reference.shape} cannot be held: {error}") from error
    digest = blake3()
    flat = array.reshape(-1).view(np.uint8).data
    for start in range(0, reference.nbytes, CHUNK_BYTES):
        chunk = flat[start : start + CHUNK_BYTES]
        _read_exactly(file, chunk)
        digest.update(chunk)
    return array, digest.hexdigest()


def _hash_array(reference: TensorReference, file: io.BufferedReader) -> tuple[Array, str]:
    digest = blake3()
    buffer = memoryview(bytearray(min(CHUNK_BYTES, reference.nbytes)))
    for start in range(0, reference.nbytes, CHUNK_BYTES):
        chunk = buffer[: min(CHUNK_BYTES, reference.nbytes - start)]
        _read_exactly(file, chunk)
        digest.update(chunk)
    return np.empty(0), digest.hexdigest()


def _read_exactly(file: io.BufferedReader, chunk: memoryview) -> None:
    if file.readinto(chunk) != len(chunk):
        raise CheckpointError(f"{TENSORS} ended early")


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    try:
        yield
    except CheckpointError as error:
        raise type(error)(f"{path}: {error.message}", hint=error.hint) from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error


def _open_regular(path: Path) -> io.BufferedReader:
    """Neither a link out of the repository nor a pipe that would keep its reader waiting."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CheckpointError(f"{path.name} is not a regular file")
    return os.fdopen(descriptor, "rb")
