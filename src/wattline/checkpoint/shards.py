"""Shards: how do several ranks save one checkpoint together?

Each rank writes what it holds into a pack of its own, then a part that describes it: a manifest of its own,
`parts/step-00000120.e3/2-of-4`, whose sharded tensors are blocks. When all parts are there one rank merges
them and publishes the checkpoint; before that nothing is visible. A sharded tensor's blocks tile it exactly.
All else is the same on every rank, and rank 0 alone writes it. An attempt that starts again takes a new
epoch, so the parts of two tries never mix.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from blake3 import blake3

from wattline.checkpoint.chunks import Chunk, Pack, Table
from wattline.checkpoint.errors import CheckpointError
from wattline.checkpoint.manifest import MAX_MANIFEST_BYTES, Manifest, read_manifest, write_manifest
from wattline.checkpoint.reading import Chunks
from wattline.checkpoint.repository import PACKS, PARTS, checkpoint_name, publish, require_current
from wattline.checkpoint.retention import prune_after_saving
from wattline.checkpoint.saving import NO_LINEAGE, NO_METRICS, NOTHING, WORKERS, Former, Packer, Saved, split
from wattline.checkpoint.stores import Store
from wattline.checkpoint.tensors import (
    Array,
    Block,
    Box,
    ShardedReference,
    TensorReference,
    read_block,
    require_tiling,
)
from wattline.checkpoint.tree import MAX_DEPTH, encode

_PART = re.compile(r"parts/step-(\d{8,19})\.e(\d{1,19})/\d{1,9}-of-\d{1,9}", re.ASCII)
_LONGEST_PAUSE_SECONDS = 1.0
_MOST_NAMED = 20
_LIST = "[]"
_BLOCK_FIELDS = frozenset({"dtype", "shape", "chunks", "offset", "of"})


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A leaf of a rank's tree: its block of a tensor of this shape."""

    array: Array
    shape: tuple[int, ...]
    offset: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedShard:
    """A rank's part that waits to be published; the next save may build on `former` once it is.

    Only what has not changed is shared: the arrays stay the caller's, who may change them at once.
    """

    name: str
    raw_bytes: int
    written_bytes: int
    former: Former


@dataclass(frozen=True, slots=True)
class _BlockReference(TensorReference):
    """A block as its rank's part holds it."""

    offset: tuple[int, ...]
    whole: tuple[int, ...]

    def to_node(self) -> dict[str, Any]:
        node = TensorReference.to_node(self)
        return {**node, "offset": list(self.offset), "of": list(self.whole)}


def save_shard(
    store: Store,
    tree: object,
    *,
    step: int,
    epoch: int,
    rank: int,
    ranks: int,
    former: Former = NOTHING,
) -> SavedShard:
    """Write what one rank holds; a part it wrote for the same step before is replaced."""
    if not 0 <= rank < ranks:
        raise CheckpointError(f"rank {rank} is not one of {ranks} ranks")
    name = checkpoint_name(step, epoch)
    require_current(store, epoch)
    with ThreadPoolExecutor(WORKERS, thread_name_prefix="encode") as pool:
        packer = Packer(former, pool)
        node = _describe(tree, packer, writes_all=rank == 0)
        table = packer.write_to(store, name)
    part = Manifest(
        metrics=NO_METRICS,
        step=step,
        epoch=epoch,
        saved_at=time.time(),
        parent=None,
        lineage={},
        table=table,
        tree=node,
    )
    raw, _ = write_manifest(part)
    store.put(_part_name(name, rank, ranks), raw, replace=True)
    return SavedShard(
        name=name,
        raw_bytes=packer.raw_bytes,
        written_bytes=packer.size_bytes + len(raw),
        former=Former(former.digest, table),
    )


def _part_name(name: str, rank: int, ranks: int) -> str:
    return f"{PARTS}{name}/{rank}-of-{ranks}"


def _describe(tree: object, packer: Packer, *, writes_all: bool) -> Any:
    """The node of a rank's tree; the packer is given its blocks, and all else only where it writes all."""
    shards: dict[int, Shard] = {}
    bare = _without_shards(tree, shards, "")
    numbers: dict[int, str] = {}
    mine: dict[str, Array] = {}

    def collect(array: Array, _: str) -> TensorReference:
        if writes_all or id(array) in shards:
            mine[numbers.setdefault(id(array), str(len(numbers)))] = array
        return _hashed(array, ())

    def refer(array: Array, _: str) -> TensorReference:
        if id(array) not in numbers:
            return _hashed(array, split(np.ascontiguousarray(array)))
        reference = TensorReference.from_node(packed[numbers[id(array)]]["tensor"])
        shard = shards.get(id(array))
        if shard is None:
            return reference
        return _BlockReference(reference.dtype, reference.shape, reference.chunks, shard.offset, shard.shape)

    encode(bare, collect)
    packed = packer.describe(mine)["dict"]
    return encode(bare, refer)


def _hashed(array: Array, chunks: Iterable[memoryview]) -> TensorReference:
    hashes = tuple(blake3(chunk).hexdigest() for chunk in chunks)
    return TensorReference(array.dtype.str, array.shape, hashes)


def _without_shards(value: Any, shards: dict[int, Shard], place: str) -> Any:
    """The tree with an array for each shard, by whose identity the shard is found again."""
    if isinstance(value, Shard):
        if not Box(value.offset, value.array.shape).is_within(value.shape):
            raise CheckpointError(
                f"{place}: a block {value.array.shape} at {value.offset} does not lie in {value.shape}"
            )
        array = value.array.view()
        shards[id(array)] = value
        return array
    if isinstance(value, dict):
        return {key: _without_shards(item, shards, f"{place}/{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_without_shards(item, shards, f"{place}/{index}") for index, item in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    return value


def publish_shards(
    store: Store,
    *,
    step: int,
    epoch: int,
    ranks: int,
    keep: int | None = None,
    lineage: Mapping[str, str] = NO_LINEAGE,
    parent: str | None = None,
    timeout_seconds: float = 600.0,
) -> Saved:
    """Make one checkpoint of the parts of all ranks, once they are there; one rank calls this."""
    name = checkpoint_name(step, epoch)
    _wait_for_parts(store, name, ranks=ranks, epoch=epoch, timeout_seconds=timeout_seconds)
    parts = [_read_part(store, name, rank, ranks) for rank in range(ranks)]
    whole = _merged_table([part.table for part in parts])
    merging = _Merging(Chunks(store, whole))
    tree = merging.merge([part.tree for part in parts], "")
    table = whole.only(merging.used)
    _require_packs(store, table.packs.values())
    manifest = Manifest(
        metrics=NO_METRICS,
        step=step,
        epoch=epoch,
        saved_at=time.time(),
        parent=parent,
        lineage=lineage,
        table=table,
        tree=tree,
    )
    raw, digest = write_manifest(manifest)
    publish(store, raw, step=step, epoch=epoch)
    _drop_parts(store, step, epoch)
    if keep is not None:
        prune_after_saving(store, name, keep=keep)
    new = (pack.size_bytes for pack in table.packs.values() if pack.name.startswith(f"{PACKS}{name}-"))
    return Saved(
        name=name,
        step=step,
        epoch=epoch,
        digest=digest,
        raw_bytes=merging.raw_bytes,
        size_bytes=len(raw) + sum(pack.size_bytes for pack in table.packs.values()),
        written_bytes=len(raw) + sum(new),
    )


def _wait_for_parts(store: Store, name: str, *, ranks: int, epoch: int, timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    pause_seconds = 0.01
    while True:
        require_current(store, epoch)
        there = {stored.name for stored in store.list(f"{PARTS}{name}/")}
        missing = [rank for rank in range(ranks) if _part_name(name, rank, ranks) not in there]
        if not missing:
            return
        left_seconds = deadline - time.monotonic()
        if left_seconds <= 0:
            named = ", ".join(map(str, missing[:_MOST_NAMED])) + (", …" if missing[_MOST_NAMED:] else "")
            raise CheckpointError(
                f"{store.address}: {name}: {len(missing)} of {ranks} ranks have not saved their part"
                f" after {timeout_seconds:g} s: {named}",
                hint="look at what became of those ranks; the checkpoint before is intact",
            )
        time.sleep(min(pause_seconds, left_seconds))
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)


def _read_part(store: Store, name: str, rank: int, ranks: int) -> Manifest:
    part_name = _part_name(name, rank, ranks)
    try:
        part, _ = read_manifest(store.read(part_name, 0, MAX_MANIFEST_BYTES + 1))
    except CheckpointError as error:
        raise type(error)(f"{store.address}/{part_name}: {error.message}", hint=error.hint) from error
    if checkpoint_name(part.step, part.epoch) != name:
        raise CheckpointError(f"{store.address}/{part_name}: is of step {part.step}, epoch {part.epoch}")
    return part


def _merged_table(tables: Sequence[Table]) -> Table:
    """One table of all. Of a chunk that several ranks wrote the one that hangs on the fewest others is taken:
    so no chain becomes longer than it was in one of the tables, nor a circle."""
    packs: dict[str, Pack] = {}
    chosen: dict[str, tuple[int, Chunk]] = {}
    for table in tables:
        if any(packs.get(name, pack) != pack for name, pack in table.packs.items()):
            raise CheckpointError("two ranks describe one pack in two ways")
        packs |= table.packs
        for digest, chunk in table.chunks.items():
            links = sum(1 for _ in table.chain(digest))
            if digest not in chosen or links < chosen[digest][0]:
                chosen[digest] = links, chunk
    return Table(packs, {digest: chunk for digest, (_, chunk) in chosen.items()})


class _Merging:
    """Makes one tree of the ranks' trees, place by place."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self.used: dict[str, None] = {}
        self.raw_bytes = 0

    def merge(self, nodes: Sequence[Any], place: str, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise CheckpointError(f"the tree is nested deeper than {MAX_DEPTH} levels")
        kind = _kind(nodes[0])
        self._require_alike([_kind(node) for node in nodes], place)
        if kind == _LIST:
            self._require_alike([len(node) for node in nodes], place)
            rows = enumerate(zip(*nodes, strict=True))
            return [self.merge(row, f"{place}/{index}", depth + 1) for index, row in rows]
        contents = [node[kind] for node in nodes] if kind else []
        if kind == "tuple" and _are(list, contents):
            return {kind: self.merge(contents, place, depth)}
        if kind == "dict" and _are(dict, contents):
            pairs = [sorted(content.items()) for content in contents]
            merged = dict(self._merge_pairs(pairs, place, depth))
            return {kind: {key: merged[key] for key in contents[0]}}
        if kind == "items" and _are(list, contents):
            return {kind: [list(pair) for pair in self._merge_pairs(contents, place, depth)]}
        if kind == "tensor" and _are(dict, contents):
            return self._merge_tensor(contents, place)
        self._require_alike(nodes, place)
        return nodes[0]

    def _merge_pairs(
        self, ranks: Sequence[Sequence[Any]], place: str, depth: int
    ) -> Iterator[tuple[Any, Any]]:
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pairs in ranks for pair in pairs):
            raise CheckpointError(f"{place}: an item of a dict is not a pair")
        self._require_alike([[key for key, _ in pairs] for pairs in ranks], place)
        for number, (key, _) in enumerate(ranks[0]):
            yield key, self.merge([pairs[number][1] for pairs in ranks], f"{place}/{key}", depth + 1)

    def _merge_tensor(self, contents: Sequence[dict[str, Any]], place: str) -> Any:
        self._require_alike([sorted(content) for content in contents], place)
        is_sharded = set(contents[0]) == _BLOCK_FIELDS
        if not is_sharded:
            self._require_alike(contents, place)
        try:
            if not is_sharded:
                self._use(TensorReference.from_node(contents[0]))
                return {"tensor": contents[0]}
            sharded = _gathered(contents)
            for block in sharded.tensors():
                self._use(block)
        except CheckpointError as error:
            raise CheckpointError(f"{place}: {error.message}", hint=error.hint) from error
        return {"sharded": sharded.to_node()}

    def _use(self, reference: TensorReference) -> None:
        self._chunks.check_reference(reference)
        self.used.update(dict.fromkeys(reference.chunks))
        self.raw_bytes += reference.size_bytes

    def _require_alike(self, values: Sequence[Any], place: str) -> None:
        # By what they look like: True is not 1, nor 0.0 the same as -0.0.
        first = repr(values[0])
        other = next((rank for rank, value in enumerate(values) if repr(value) != first), None)
        if other is not None:
            raise CheckpointError(
                f"{place or 'the tree'}: rank {other} has another value than rank 0",
                hint="what is not sharded must be the same on all ranks; what each has for itself can be"
                " a Shard, such as a row of an array with a row for each rank",
            )


def _kind(node: Any) -> str:
    if isinstance(node, list):
        return _LIST
    return next(iter(node), "") if isinstance(node, dict) and len(node) == 1 else ""


def _are(kind: type, values: Iterable[Any]) -> bool:
    return all(isinstance(value, kind) for value in values)


def _gathered(contents: Sequence[Any]) -> ShardedReference:
    """The tensor whose blocks the ranks have; what several hold must be the same, and is kept once."""
    first, blocks = contents[0], dict[Box, Block]()
    whole = TensorReference.from_node({"dtype": first["dtype"], "shape": first["of"], "chunks": []})
    for content in contents:
        if [content["dtype"], content["of"]] != [first["dtype"], first["of"]]:
            raise CheckpointError(
                f"the ranks do not agree on its dtype and shape: {first['dtype']} {first['of']}"
                f" and {content['dtype']} {content['of']}"
            )
        block = read_block([content["offset"], content["shape"], content["chunks"]], whole)
        if block.box.volume and blocks.setdefault(block.box, block) != block:
            raise CheckpointError(f"two ranks have different blocks {block.box.shape} at {block.box.offset}")
    require_tiling(whole.shape, list(blocks))
    ordered = sorted(blocks.values(), key=lambda block: block.box.offset)
    return ShardedReference(whole.dtype, whole.shape, tuple(ordered))


def _require_packs(store: Store, packs: Iterable[Pack]) -> None:
    sizes = {stored.name: stored.size_bytes for stored in store.list(PACKS)}
    for pack in packs:
        if sizes.get(pack.name) != pack.size_bytes:
            raise CheckpointError(
                f"{store.address}: {pack.name} has {sizes.get(pack.name)} bytes, not {pack.size_bytes}",
                hint="a part waited so long that its pack was swept away, or built on a checkpoint that was"
                " never published; save again",
            )


def _drop_parts(store: Store, step: int, epoch: int) -> None:
    """Those just published, and those that never will be: of earlier steps and attempts."""
    for stored in store.list(PARTS):
        match = _PART.fullmatch(stored.name)
        if match is not None and (int(match[2]), int(match[1])) <= (epoch, step):
            store.delete(stored.name)
