"""Resharding: how does a rank get its blocks of a checkpoint, however many ranks saved it?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wattline.checkpoint.reading import (
    Chunks,
    Opened,
    Restored,
    faults_of,
    open_checkpoint,
    open_newest,
    require_memory,
)
from wattline.checkpoint.stores import Store
from wattline.checkpoint.tensors import Block, Box, ShardedReference, TensorReference
from wattline.checkpoint.tree import decode
from wattline.errors import UsageError

# Which block a rank wants of the tensor at a place of the tree: (offset, shape), or None for all of it.
Want = Callable[[str, tuple[int, ...], np.dtype[Any]], tuple[Sequence[int], Sequence[int]] | None]


def restore_shards(store: Store, want: Want, name: str | None = None) -> Restored | None:
    """The newest checkpoint that can be read, or the one of this name, with the blocks of tensors that one
    rank wants; only chunks that overlap those are read.

    Ranks that each ask for the newest may find different ones where one is damaged: let one rank choose the
    name for all.
    """
    if name is None:
        found = open_newest(store, lambda opened: _read_wanted(opened, want))
    else:
        opened = open_checkpoint(store, name)
        found = opened, _read_wanted(opened, want), ()
    if found is None:
        return None
    opened, (tree, raw_bytes), rejected = found
    return opened.restored(tree, raw_bytes, rejected)


def _read_wanted(opened: Opened, want: Want) -> tuple[Any, int]:
    chunks = Chunks(opened.store, opened.manifest.table)
    wanted: list[tuple[ShardedReference, Box]] = []

    def choose(reference: TensorReference | ShardedReference, place: str) -> None:
        chunks.check_reference(reference, place)
        sharded = _in_blocks(reference)
        wanted.append((sharded, _wanted_box(want, sharded, place)))

    with faults_of(opened.store, opened.name):
        decode(opened.manifest.tree, choose)
        raw_bytes = sum(box.volume * np.dtype(reference.dtype).itemsize for reference, box in wanted)
        require_memory(raw_bytes)
        turn = iter(wanted)
        tree = decode(opened.manifest.tree, lambda *_: chunks.read_box(*next(turn)))
    return tree, raw_bytes


def _in_blocks(reference: TensorReference | ShardedReference) -> ShardedReference:
    if isinstance(reference, ShardedReference):
        return reference
    block = Block(Box((0,) * len(reference.shape), reference.shape), reference.chunks)
    return ShardedReference(reference.dtype, reference.shape, (block,))


def _wanted_box(want: Want, reference: ShardedReference, place: str) -> Box:
    asked = want(place, reference.shape, np.dtype(reference.dtype))
    if asked is None:
        return Box((0,) * len(reference.shape), reference.shape)
    box = Box(tuple(map(int, asked[0])), tuple(map(int, asked[1])))
    if not box.is_within(reference.shape):
        raise UsageError(f"{place}: a block {box.shape} at {box.offset} does not lie in {reference.shape}")
    return box
