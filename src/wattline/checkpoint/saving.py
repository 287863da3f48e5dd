"""Saving: how does a tree in memory become a checkpoint in a store?"""

from __future__ import annotations

import os
import secrets
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np
from blake3 import blake3

from wattline.checkpoint.chunks import CHUNK_BYTES, Chunk, Pack, Table
from wattline.checkpoint.codecs import encode as encode_chunk
from wattline.checkpoint.codecs import uses_base
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
) -> tuple[Saved, Former]:
    """The same, and what the next one may build on; it holds on to the arrays of the tree."""
    name = checkpoint_name(step, epoch)
    require_current(store, epoch)
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="encode") as pool:
        packer = Packer(former, pool, longest_chain=longest_chain)
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

    All are hashed before one is written: what is left of an old pack decides whether it is still worth
    building on. Otherwise a few bytes that never change would keep a large pack, here and in every copy.
    """

    def __init__(
        self, former: Former, pool: ThreadPoolExecutor, *, longest_chain: int = LONGEST_CHAIN
    ) -> None:
        self._former, self._pool, self._longest_chain = former, pool, longest_chain
        self._wanted: dict[str, _Wanted] = {}
        self._new: dict[str, Chunk] = {}
        self._hash = blake3()
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
        hashes = self._pool.map(_hash_chunk, [raw for array in arrays for raw in split(array)])
        each = iter(arrays)

        def refer(array: Array, place: str) -> TensorReference:
            whole = next(each)
            return self._want(array, place, whole, [next(hashes) for _ in split(whole)])

        return encode(tree, refer)

    def _want(self, array: Array, place: str, whole: Array, digests: list[str]) -> TensorReference:
        width, bases = _width(whole.dtype), _bases(self._former.tensors.get(place), whole)
        for number, (digest, raw) in enumerate(zip(digests, split(whole), strict=True)):
            if digest not in self._wanted:
                self._wanted[digest] = _Wanted(raw, width, bases[number] if bases else None)
        reference = TensorReference(array.dtype.str, array.shape, tuple(digests))
        self.raw_bytes += whole.nbytes
        self.tensors[place] = (reference, whole)
        return reference

    def write_to(self, store: Store, checkpoint: str) -> Table:
        """Write what is missing as one pack; all that is needed to restore what was put."""
        name = f"{PACKS}{checkpoint}-{secrets.token_hex(8)}"
        with store.create(name) as writing:
            table = self._write(writing, name)
            if self.size_bytes:
                writing.finish()
        return table

    def _write(self, writing: Writing, name: str) -> Table:
        solid = self._solid()
        missing = [(digest, wanted) for digest, wanted in self._wanted.items() if digest not in solid.chunks]
        for (digest, wanted), (codec, stored, base) in zip(
            missing, self._encode_ahead(missing, solid), strict=True
        ):
            self._new[digest] = Chunk(
                name, self.size_bytes, len(stored), len(wanted.raw), wanted.width, codec, base
            )
            self._hash.update(stored)
            writing.write(memoryview(stored))
            self.size_bytes += len(stored)
        packs = dict(solid.packs)
        if self.size_bytes:
            packs[name] = Pack(name, self.size_bytes, self._hash.hexdigest())
        return Table(packs, {**solid.chunks, **self._new}).only(self._wanted)

    def _encode_ahead(
        self, missing: list[tuple[str, _Wanted]], solid: Table
    ) -> Iterator[tuple[str, bytes, str | None]]:
        """In order, a few chunks ahead of the one that is written: memory stays bounded."""

        def encode_one(wanted: _Wanted) -> tuple[str, bytes, str | None]:
            base = wanted.base if wanted.base and self._is_short(solid, wanted.base[0]) else None
            codec, stored = encode_chunk(wanted.raw, wanted.width, base[1] if base else None)
            return codec, stored, base[0] if base and uses_base(codec) else None

        waiting = iter(missing)
        ahead = deque(self._pool.submit(encode_one, wanted) for _, wanted in islice(waiting, _AHEAD))
        while ahead:
            yield ahead.popleft().result()
            ahead += [self._pool.submit(encode_one, wanted) for _, wanted in islice(waiting, 1)]

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
