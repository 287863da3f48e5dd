"""Saving: how does a tree in memory become a checkpoint in a store?"""

from __future__ import annotations

import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from blake3 import blake3

from wattline.checkpoint.chunks import CHUNK_BYTES, Chunk, Pack, Table
from wattline.checkpoint.codecs import RAW, uses_base
from wattline.checkpoint.codecs import encode as encode_chunk
from wattline.checkpoint.manifest import Manifest, write_manifest
from wattline.checkpoint.repository import PACKS, checkpoint_name, publish, require_current
from wattline.checkpoint.retention import prune_after_saving
from wattline.checkpoint.stores import Store, Writing
from wattline.checkpoint.tensors import Array, TensorReference
from wattline.checkpoint.tree import encode

NO_LINEAGE: Mapping[str, str] = MappingProxyType({})
NO_METRICS: Mapping[str, float] = MappingProxyType({})
# A chunk that is a difference to a difference and so on: after so many it is written whole again. Where fewer
# checkpoints are kept, after as many: a longer chain would keep packs that nobody else needs.
LONGEST_CHAIN = 8
# A pack of which less than this is needed is not built on: the rest of it would have to be kept, and copied.
_LEAST_USED = 0.5
WORKERS = min(4, len(os.sched_getaffinity(0)))
_AHEAD = 2 * WORKERS
_SMALL_BYTES = 64 * 1024
_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A published checkpoint; `digest` is the hash of its manifest, and so of everything in it."""

    name: str
    step: int
    epoch: int
    digest: str
    raw_bytes: int  # in memory
    size_bytes: int  # of all that a copy elsewhere needs
    written_bytes: int  # that this save added to the store


@dataclass(frozen=True, slots=True)
class Former:
    """The checkpoint before: what is in it need not be written again, or only as a difference."""

    digest: str | None
    table: Table
    tensors: Mapping[str, tuple[TensorReference, Array]] = field(default_factory=dict)
    """By place in the tree, those still in memory."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A chunk that the checkpoint holds, and the one of the checkpoint before that it replaces."""

    raw: memoryview
    width: int
    base: tuple[str, memoryview] | None


NOTHING = Former(None, Table({}, {}))


def save(
    store: Store,
    tree: object,
    *,
    step: int,
    epoch: int,
    keep: int | None = None,
    lineage: Mapping[str, str] = NO_LINEAGE,
    former: Former = NOTHING,
) -> Saved:
    """Publish a checkpoint; when this returns it survives a power cut, and only `keep` are left."""
    saved, _ = save_after(former, store, tree, step=step, epoch=epoch, lineage=lineage)
    if keep is not None:
        prune_after_saving(store, saved.name, keep=keep)
    return saved


def save_after(
    former: Former,
    store: Store,
    tree: object,
    *,
    step: int,
    epoch: int,
    lineage: Mapping[str, str],
    metrics: Mapping[str, float] = NO_METRICS,
    longest_chain: int = LONGEST_CHAIN,
    is_raw: bool = False,
    confirm: Callable[[], None] = lambda: None,
) -> tuple[Saved, Former]:
    """The same, and what the next one may build on; it holds on to the arrays of the tree.

    `is_raw`: chunks are stored as they are, which is sooner. `confirm` raises before anything is published
    where the tree is not what it should be.
    """
    name = checkpoint_name(step, epoch)
    require_current(store, epoch)
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="encode") as pool:
        packer = Packer(former, pool, longest_chain=longest_chain)
        if is_raw:
            node, table = packer.write_raw_to(store, name, tree)
        else:
            node = packer.describe(tree)
            table = packer.write_to(store, name)
    manifest = Manifest(
        step=step,
        epoch=epoch,
        saved_at=time.time(),
        parent=former.digest,
        lineage=lineage,
        metrics=metrics,
        table=table,
        tree=node,
    )
    raw, digest = write_manifest(manifest)
    confirm()
    publish(store, raw, step=step, epoch=epoch)
    saved = Saved(
        name=name,
        step=step,
        epoch=epoch,
        digest=digest,
        raw_bytes=packer.raw_bytes,
        size_bytes=len(raw) + sum(pack.size_bytes for pack in manifest.table.packs.values()),
        written_bytes=packer.size_bytes + len(raw),
    )
    return saved, Former(digest, manifest.table, packer.tensors)


class Packer:
    """Puts the chunks of one save into one pack, but for those that are in the store already.

    All are hashed before one of the old ones is left out: what is left of an old pack decides whether it is
    still worth building on. Otherwise a few bytes that never change would keep a large pack, here and in
    every copy.
    """

    def __init__(
        self, former: Former, pool: ThreadPoolExecutor, *, longest_chain: int = LONGEST_CHAIN
    ) -> None:
        self._former, self._pool, self._longest_chain = former, pool, longest_chain
        self._wanted: dict[str, _Wanted] = {}
        self._straight_into: _Pack | None = None
        self.size_bytes = 0
        self.raw_bytes = 0
        self.tensors: dict[str, tuple[TensorReference, Array]] = {}

    def describe(self, tree: object) -> Any:
        """The node of a tree, with the hash of every chunk in it."""
        arrays: list[Array] = []  # in the order of the tree: two places may be spelled alike

        def collect(array: Array, _place: str) -> TensorReference:
            arrays.append(np.ascontiguousarray(array))
            return TensorReference(array.dtype.str, array.shape, ())

        encode(tree, collect)
        hashes = self._ahead(_hash_chunk, [raw for array in arrays for raw in split(array)], size=len)
        each = iter(arrays)

        def refer(array: Array, place: str) -> TensorReference:
            whole = next(each)
            return self._want(array, place, whole, [next(hashes) for _ in split(whole)])

        return encode(tree, refer)

    def _want(self, array: Array, place: str, whole: Array, digests: list[str]) -> TensorReference:
        width, bases = _width(whole.dtype), _bases(self._former.tensors.get(place), whole)
        for number, (digest, raw) in enumerate(zip(digests, split(whole), strict=True)):
            if digest in self._wanted:
                continue
            wanted = self._wanted[digest] = _Wanted(raw, width, bases[number] if bases else None)
            if self._straight_into is not None and digest not in self._former.table.chunks:
                self._straight_into.add(digest, wanted, RAW, raw, None)
        reference = TensorReference(array.dtype.str, array.shape, tuple(digests))
        self.raw_bytes += whole.nbytes
        self.tensors[place] = (reference, whole)
        return reference

    def write_to(self, store: Store, checkpoint: str) -> Table:
        """Write what is missing as one pack; all that is needed to restore what was put."""
        with _packing(store, checkpoint) as pack:
            solid = self._solid()
            missing = self._missing(solid, pack)
            for (digest, wanted), encoded in zip(missing, self._encode_ahead(missing, solid), strict=True):
                pack.add(digest, wanted, *encoded)
        return self._table(solid, pack)

    def write_raw_to(self, store: Store, checkpoint: str, tree: object) -> tuple[Any, Table]:
        """Describe a tree and write what is missing as it is, each new chunk as soon as its hash is known."""
        with _packing(store, checkpoint) as pack:
            self._straight_into = pack
            node = self.describe(tree)
            solid = self._solid()
            for digest, wanted in self._missing(solid, pack):
                pack.add(digest, wanted, RAW, wanted.raw, None)
        return node, self._table(solid, pack)

    def _missing(self, solid: Table, pack: _Pack) -> list[tuple[str, _Wanted]]:
        return [
            (digest, wanted)
            for digest, wanted in self._wanted.items()
            if digest not in solid.chunks and digest not in pack.chunks
        ]

    def _table(self, solid: Table, pack: _Pack) -> Table:
        self.size_bytes = pack.size_bytes
        return Table({**solid.packs, **pack.described()}, {**solid.chunks, **pack.chunks}).only(self._wanted)

    def _encode_ahead(
        self, missing: list[tuple[str, _Wanted]], solid: Table
    ) -> Iterator[tuple[str, bytes, str | None]]:
        def encode_one(wanted: _Wanted) -> tuple[str, bytes, str | None]:
            base = wanted.base if wanted.base and self._is_short(solid, wanted.base[0]) else None
            codec, stored = encode_chunk(wanted.raw, wanted.width, base[1] if base else None)
            return codec, stored, base[0] if base and uses_base(codec) else None

        return self._ahead(encode_one, [wanted for _, wanted in missing], size=lambda wanted: len(wanted.raw))

    def _ahead(
        self, function: Callable[[_In], _Out], values: Iterable[_In], *, size: Callable[[_In], int]
    ) -> Iterator[_Out]:
        """In order, a few chunks ahead of who asks: memory stays bounded, and what was read lately is near.

        Small ones are not worth a thread's attention.
        """
        begun: deque[Future[_Out] | _In] = deque()
        waiting, threads = iter(values), 0
        while True:
            while threads < _AHEAD and (value := next(waiting, None)) is not None:
                if size(value) <= _SMALL_BYTES:
                    begun.append(value)
                else:
                    begun.append(self._pool.submit(function, value))
                    threads += 1
            if not begun:
                return
            first = begun.popleft()
            if isinstance(first, Future):
                threads -= 1
                yield first.result()
            else:
                yield function(first)

    def _is_short(self, table: Table, digest: str) -> bool:
        return digest in table.chunks and sum(1 for _ in table.chain(digest)) < self._longest_chain

    def _solid(self) -> Table:
        """Of the checkpoint before, what lies in packs that are still used for the most part."""
        table = self._former.table
        digests = [digest for digest in self._wanted if digest in table.chunks]
        digests += [wanted.base[0] for wanted in self._wanted.values() if wanted.base]
        used_bytes: dict[str, int] = {}
        for chunk in table.only(digests).chunks.values():
            used_bytes[chunk.pack] = used_bytes.get(chunk.pack, 0) + chunk.stored_bytes
        worth = {
            pack
            for pack, size_bytes in used_bytes.items()
            if size_bytes >= _LEAST_USED * table.packs[pack].size_bytes
        }
        return table.only(
            [digest for digest in digests if all(chunk.pack in worth for chunk in table.chain(digest))]
        )


class _Pack:
    """A pack being written. Its hash is taken beside the writing: both take about as long."""

    def __init__(self, name: str, writing: Writing, beside: ThreadPoolExecutor) -> None:
        self._name, self._writing, self._beside = name, writing, beside
        self._hash = blake3()
        self._unhashed: list[bytes | memoryview] = []
        self._hashing: deque[Future[None]] = deque()
        self.size_bytes = 0
        self.chunks: dict[str, Chunk] = {}

    def add(
        self, digest: str, wanted: _Wanted, codec: str, stored: bytes | memoryview, base: str | None
    ) -> None:
        self.chunks[digest] = Chunk(
            self._name, self.size_bytes, len(stored), len(wanted.raw), wanted.width, codec, base
        )
        self.size_bytes += len(stored)
        self._unhashed.append(stored)
        if len(stored) > _SMALL_BYTES:
            self._hashing.append(self._beside.submit(self._update, self._unhashed))
            self._unhashed = []
        self._writing.write(memoryview(stored))
        if len(self._hashing) > _AHEAD:  # what waits to be hashed takes memory
            self._hashing.popleft().result()

    def _update(self, pieces: Sequence[bytes | memoryview]) -> None:
        for piece in pieces:
            self._hash.update(piece)

    def described(self) -> dict[str, Pack]:
        """As the table holds it; nothing where nothing was added."""
        if not self.size_bytes:
            return {}
        for hashing in self._hashing:
            hashing.result()
        self._update(self._unhashed)
        return {self._name: Pack(self._name, self.size_bytes, self._hash.hexdigest())}


@contextmanager
def _packing(store: Store, checkpoint: str) -> Iterator[_Pack]:
    """A pack that is durable when this ends; none where nothing was added."""
    name = f"{PACKS}{checkpoint}-{secrets.token_hex(8)}"
    with store.create(name) as writing, ThreadPoolExecutor(1, thread_name_prefix="hash") as beside:
        pack = _Pack(name, writing, beside)
        yield pack
        if pack.size_bytes:
            writing.finish()


def _hash_chunk(raw: memoryview) -> str:
    return blake3(raw).hexdigest()


def _bases(before: tuple[TensorReference, Array] | None, array: Array) -> list[tuple[str, memoryview]] | None:
    """The chunks of the same tensor in the checkpoint before; None where it was another."""
    if before is None:
        return None
    reference, former = before
    if (former.dtype, former.shape) != (array.dtype, array.shape):
        return None
    return list(zip(reference.chunks, split(former), strict=True))


def split(array: Array) -> Iterator[memoryview]:
    if array.nbytes:
        flat = array.reshape(-1).view(np.uint8).data
        for start in range(0, array.nbytes, CHUNK_BYTES):
            yield flat[start : start + CHUNK_BYTES]


def _width(dtype: np.dtype[np.generic]) -> int:
    """The size of one number: complex ones are two."""
    if dtype.kind == "c":
        return dtype.itemsize // 2
    return dtype.itemsize if dtype.kind in "biufmM" else 1
