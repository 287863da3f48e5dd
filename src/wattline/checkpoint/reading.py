"""Reading: is this checkpoint whole, and what does it hold?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from blake3 import blake3

from wattline.checkpoint.chunks import Table
from wattline.checkpoint.codecs import decode as decode_chunk
from wattline.checkpoint.errors import CheckpointError, NothingUsableError, Rejected, StorageError
from wattline.checkpoint.manifest import MAX_MANIFEST_BYTES, Manifest, NewerSchemaError, read_manifest
from wattline.checkpoint.repository import CHECKPOINTS, checkpoint_name, list_checkpoints
from wattline.checkpoint.stores import Store
from wattline.checkpoint.tensors import Array, Box, ShardedReference, TensorReference, pieces
from wattline.checkpoint.tree import decode

_Read = TypeVar("_Read")
_MOST_TURNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A verified checkpoint, and the newer ones that were passed over to reach it."""

    name: str
    step: int
    epoch: int
    lineage: Mapping[str, str]
    tree: Any
    digest: str
    table: Table
    raw_bytes: int
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A checkpoint whose manifest was read and holds together; its tensors were not looked at."""

    store: Store
    name: str
    raw_manifest: bytes
    manifest: Manifest
    digest: str

    def restored(self, tree: Any, raw_bytes: int, rejected: tuple[Rejected, ...]) -> Restored:
        """With what was read of it."""
        return Restored(
            name=self.name,
            step=self.manifest.step,
            epoch=self.manifest.epoch,
            lineage=self.manifest.lineage,
            tree=tree,
            digest=self.digest,
            table=self.manifest.table,
            raw_bytes=raw_bytes,
            rejected=rejected,
        )


def restore(store: Store, name: str | None = None) -> Restored | None:
    """The newest checkpoint that verifies, or the one of this name; None when there is none at all."""
    rejected: tuple[Rejected, ...] = ()
    if name is not None:
        opened = open_checkpoint(store, name)
        tree = read_tree(opened)
    else:
        found = open_newest(store, read_tree)
        if found is None:
            return None
        opened, tree, rejected = found
    return opened.restored(tree, raw_bytes_of(opened.manifest), rejected)


def verify(store: Store, name: str, progress: Callable[[int], None] | None = None) -> None:
    """Read every byte and compare every hash; raises CheckpointError at the first that differs.

    `progress` is told of raw bytes as they are found good.
    """
    verify_tensors(open_checkpoint(store, name), progress)


def open_newest(
    store: Store, read: Callable[[Opened], _Read]
) -> tuple[Opened, _Read, tuple[Rejected, ...]] | None:
    """The newest checkpoint whose opening and reading find no fault, with what was read.

    What is pruned while it is read is no damage: it is looked for again among what is there then.
    """
    for _ in range(_MOST_TURNS):
        rejected: list[Rejected] = []
        entries = list_checkpoints(store)
        for entry in entries:
            try:
                opened = open_checkpoint(store, entry.name)
                return opened, read(opened), tuple(rejected)
            except (NewerSchemaError, StorageError):  # good work may be there: do not fall back behind it
                raise
            except CheckpointError as error:
                rejected.append(Rejected(entry.name, error.message))
        if {entry.name for entry in entries} <= {entry.name for entry in list_checkpoints(store)}:
            break
    if rejected:
        raise NothingUsableError(store.address, tuple(rejected))
    return None


def open_checkpoint(store: Store, name: str) -> Opened:
    """Read the manifest and check that it holds together."""
    with faults_of(store, name):
        raw = store.read(CHECKPOINTS + name, 0, MAX_MANIFEST_BYTES + 1)
        if len(raw) > MAX_MANIFEST_BYTES:
            raise CheckpointError(f"the manifest is larger than {MAX_MANIFEST_BYTES} bytes")
        manifest, digest = read_manifest(raw)
        if name != checkpoint_name(manifest.step, manifest.epoch):
            raise CheckpointError(f"the manifest is of step {manifest.step}, epoch {manifest.epoch}")
        return Opened(store, name, raw, manifest, digest)


def read_tree(opened: Opened) -> Any:
    """The tree with its arrays, every chunk verified as it is read."""
    with faults_of(opened.store, opened.name):
        require_memory(raw_bytes_of(opened.manifest))
        chunks = Chunks(opened.store, opened.manifest.table)
        return decode(opened.manifest.tree, chunks.read_array)


def verify_tensors(opened: Opened, progress: Callable[[int], None] | None = None) -> None:
    """Every chunk once, without holding more than a chain of them in memory."""
    with faults_of(opened.store, opened.name):
        table = opened.manifest.table
        chunks = Chunks(opened.store, table)
        decode(opened.manifest.tree, chunks.check_reference)
        for digest, chunk in table.chunks.items():
            chunks.fill(digest, memoryview(bytearray(chunk.raw_bytes)))
            if progress is not None:
                progress(chunk.raw_bytes)


def raw_bytes_of(manifest: Manifest) -> int:
    """What a checkpoint's tensors take in memory."""
    total = 0

    def count(reference: TensorReference | ShardedReference, place: str) -> None:
        del place
        nonlocal total
        total += reference.size_bytes

    decode(manifest.tree, count)
    return total


class Chunks:
    """The chunks of one checkpoint."""

    def __init__(self, store: Store, table: Table) -> None:
        self._store, self._table = store, table

    def check_reference(self, reference: TensorReference | ShardedReference, place: str = "") -> None:
        """The chunks of a tensor are there and make up its size."""
        if isinstance(reference, ShardedReference):
            for block in reference.tensors():
                self.check_reference(block, place)
            return
        known = self._table.chunks
        missing = next((digest for digest in reference.chunks if digest not in known), None)
        if missing is not None:
            raise CheckpointError(f"{place}: a tensor has a chunk {missing[:64]} that is not in the table")
        size = sum(known[digest].raw_bytes for digest in reference.chunks)
        if size != reference.size_bytes:
            raise CheckpointError(
                f"{place}: a tensor of {reference.dtype} {reference.shape} has chunks of {size} bytes"
            )

    def read_array(self, reference: TensorReference | ShardedReference, place: str) -> Array:
        """A whole tensor."""
        self.check_reference(reference, place)
        if isinstance(reference, ShardedReference):
            return self.read_box(reference, Box((0,) * len(reference.shape), reference.shape))
        array = _new_array(reference.shape, reference.dtype)
        flat = array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")
        start = 0
        for digest in reference.chunks:
            size = self._table.chunks[digest].raw_bytes
            self.fill(digest, flat[start : start + size])
            start += size
        return array

    def read_box(self, reference: ShardedReference, box: Box) -> Array:
        """A box of a tensor; bytes are one more dimension, for a chunk may end within a number."""
        width = np.dtype(reference.dtype).itemsize
        array = _new_array(box.shape, reference.dtype)
        if not array.nbytes:
            return array
        target = array.reshape(-1).view(np.uint8).reshape(*box.shape, width)
        wanted = Box((*box.offset, 0), (*box.shape, width))
        for block in reference.blocks:
            if block.box.overlap(box) is None:
                continue
            within = Box((*block.box.offset, 0), (*block.box.shape, width))
            start = 0
            for digest in block.chunks:
                size = self._table.chunks[digest].raw_bytes
                shares = [
                    (at, piece, shared)
                    for at, piece in pieces(start, start + size, within)
                    if (shared := piece.overlap(wanted)) is not None
                ]
                if shares:
                    raw = np.empty(size, dtype=np.uint8)
                    self.fill(digest, raw.data)
                    for at, piece, shared in shares:
                        source = raw[at - start : at - start + piece.volume].reshape(piece.shape)
                        target[shared.slices_in(wanted)] = source[shared.slices_in(piece)]
                start += size
        return array

    def fill(self, digest: str, into: memoryview) -> None:
        """The raw bytes of a chunk, verified."""
        chunk = self._table.chunks[digest]
        base = None
        if chunk.base is not None:
            base = memoryview(bytearray(chunk.raw_bytes))
            self.fill(chunk.base, base)
        stored = self._store.read(chunk.pack, chunk.at, chunk.stored_bytes)
        if len(stored) != chunk.stored_bytes:
            raise CheckpointError(f"{chunk.pack} ends before byte {chunk.at + chunk.stored_bytes}")
        decode_chunk(chunk.codec, stored, into, chunk.width, base)
        if blake3(into).hexdigest() != digest:
            raise CheckpointError(f"{chunk.pack} is altered at byte {chunk.at}: the hash does not match")


def _new_array(shape: tuple[int, ...], dtype: str) -> Array:
    try:
        return np.empty(shape, dtype=dtype)
    except (ValueError, MemoryError) as error:
        raise CheckpointError(f"a tensor of shape {shape} cannot be held: {error}") from error


def require_memory(size_bytes: int) -> None:
    """A manifest may name any size; what cannot be held is not begun."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if size_bytes > there:
        raise CheckpointError(
            f"it would take {size_bytes} bytes of memory, and this machine has {there}",
            hint="restore it in parts, or on a larger machine",
        )


@contextmanager
def faults_of(store: Store, name: str) -> Iterator[None]:
    try:
        yield
    except CheckpointError as error:
        raise type(error)(f"{store.address}/{CHECKPOINTS}{name}: {error.message}", hint=error.hint) from error
