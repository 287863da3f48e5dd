"""Tensors: what does a manifest say of a tensor, whole or in blocks?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wattline.checkpoint.errors import CheckpointError

_ALLOWED = re.compile(
    r"[<>|](b1|[iu][1248]|f(2|4|8|16)|c(8|16|32)|[SUV]\d{1,9}|[mM]8(\[\d{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)"
)
MAX_DIMENSIONS = 32

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class TensorReference:
    """What a tensor is, and the hashes of its chunks in order; the table says where those lie."""

    dtype: str
    shape: tuple[int, ...]
    chunks: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @classmethod
    def from_node(cls, node: object) -> TensorReference:
        """Believe nothing."""
        if not isinstance(node, dict) or set(node) != {"dtype", "shape", "chunks"}:
            raise CheckpointError("a tensor reference has the wrong fields")
        dtype, shape, chunks = node["dtype"], node["shape"], node["chunks"]
        if not isinstance(dtype, str) or not is_allowed(dtype):
            raise CheckpointError(f"a tensor has dtype {str(dtype)[:40]!r}, which is not allowed")
        if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not isinstance(chunks, list):
            raise CheckpointError("a tensor reference has a shape or chunks of the wrong kind")
        if any(type(size) is not int or size < 0 for size in shape):
            raise CheckpointError(f"a tensor has the shape {str(shape)[:80]}")
        if not all(isinstance(each, str) for each in chunks):
            raise CheckpointError("a tensor's chunks are not named by hashes")
        return cls(dtype, tuple(shape), tuple(chunks))

    def to_node(self) -> dict[str, Any]:
        """The reference as the manifest holds it."""
        return {"dtype": self.dtype, "shape": list(self.shape), "chunks": list(self.chunks)}


def is_allowed(dtype: str) -> bool:
    """Plain numbers, times and fixed text: what is the same bytes everywhere. Never Python objects."""
    return len(dtype) <= 40 and _ALLOWED.fullmatch(dtype) is not None


@dataclass(frozen=True, slots=True)
class Box:
    """A block's place in a tensor: where it begins in each dimension, and how far it goes."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def volume(self) -> int:
        return math.prod(self.shape)

    def is_within(self, whole: tuple[int, ...]) -> bool:
        """Does it lie in a tensor of this shape?"""
        return len(self.offset) == len(self.shape) == len(whole) and all(
            0 <= start <= start + size <= end
            for start, size, end in zip(self.offset, self.shape, whole, strict=True)
        )

    def overlap(self, other: Box) -> Box | None:
        """What two boxes of one tensor share."""
        starts = tuple(map(max, self.offset, other.offset))
        ends = map(min, self._ends(), other._ends())
        sizes = tuple(end - start for start, end in zip(starts, ends, strict=True))
        return Box(starts, sizes) if all(size > 0 for size in sizes) else None

    def slices_in(self, outer: Box) -> tuple[slice, ...]:
        """Where it lies in the array of a box around it."""
        starts = [start - origin for start, origin in zip(self.offset, outer.offset, strict=True)]
        return tuple(slice(start, start + size) for start, size in zip(starts, self.shape, strict=True))

    def end(self, axis: int) -> int:
        return self.offset[axis] + self.shape[axis]

    def _ends(self) -> Iterator[int]:
        return (start + size for start, size in zip(self.offset, self.shape, strict=True))


@dataclass(frozen=True, slots=True)
class Block:
    """A block and its chunks in order."""

    box: Box
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShardedReference:
    """What a tensor is that several ranks saved, and the blocks that make it up."""

    dtype: str
    shape: tuple[int, ...]
    blocks: tuple[Block, ...]

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @classmethod
    def from_node(cls, node: object) -> ShardedReference:
        """Believe nothing: the blocks tile the tensor, or the node is refused."""
        if not isinstance(node, dict) or set(node) != {"dtype", "shape", "blocks"}:
            raise CheckpointError("a sharded tensor has the wrong fields")
        whole = TensorReference.from_node({"dtype": node["dtype"], "shape": node["shape"], "chunks": []})
        if not isinstance(node["blocks"], list):
            raise CheckpointError("a sharded tensor's blocks are not a list")
        blocks = tuple(read_block(raw, whole) for raw in node["blocks"])
        require_tiling(whole.shape, [block.box for block in blocks])
        return cls(whole.dtype, whole.shape, blocks)

    def to_node(self) -> dict[str, Any]:
        """As the manifest holds it."""
        blocks = [[list(each.box.offset), list(each.box.shape), list(each.chunks)] for each in self.blocks]
        return {"dtype": self.dtype, "shape": list(self.shape), "blocks": blocks}

    def tensors(self) -> Iterator[TensorReference]:
        """Each block as a tensor of its own."""
        return (TensorReference(self.dtype, each.box.shape, each.chunks) for each in self.blocks)


def read_block(raw: object, whole: TensorReference) -> Block:
    match raw:
        case [offset, shape, chunks]:
            # An offset is read as a shape is: some numbers, none of them negative.
            start = TensorReference.from_node({"dtype": whole.dtype, "shape": offset, "chunks": []})
            tensor = TensorReference.from_node({"dtype": whole.dtype, "shape": shape, "chunks": chunks})
            return Block(Box(start.shape, tensor.shape), tensor.chunks)
    raise CheckpointError(f"a block is described as {str(raw)[:80]}")


def require_tiling(shape: tuple[int, ...], boxes: Sequence[Box]) -> None:
    """No box reaches outside, no two overlap, and nothing is left over."""
    outside = next((box for box in boxes if not box.is_within(shape)), None)
    if outside is not None:
        raise CheckpointError(f"the block {outside.shape} at {outside.offset} does not lie in {shape}")
    # Where boxes differ most, each has the fewest neighbours to be compared with.
    axis = max(range(len(shape)), key=lambda each: len({box.offset[each] for box in boxes}), default=None)
    near: list[Box] = []
    for box in boxes if axis is None else sorted(boxes, key=lambda each: each.offset[axis]):
        if axis is not None:
            near = [other for other in near if other.end(axis) > box.offset[axis]]
        if other := next((other for other in near if other.overlap(box) is not None), None):
            raise CheckpointError(
                f"the blocks {other.shape} at {other.offset} and {box.shape} at {box.offset} overlap"
            )
        near.append(box)
    covered = sum(box.volume for box in boxes)
    if covered != math.prod(shape):
        raise CheckpointError(f"the blocks cover {covered} of the {math.prod(shape)} elements of {shape}")


def pieces(start: int, end: int, box: Box) -> Iterator[tuple[int, Box]]:
    """The boxes that a run of a box's elements, in their order in memory, consists of, and where each begins.

    A run begins inside a row, goes on for whole rows, and ends inside a row; so it is in every dimension.
    """
    if start >= end:
        return
    if not box.shape:
        yield start, box
        return
    offset, inner = box.offset[0], Box(box.offset[1:], box.shape[1:])
    row = inner.volume
    first, last = -(-start // row), end // row  # of the whole rows
    if first > last:  # inside one row
        yield from _in_row(last, start, end, offset, inner)
        return
    yield from _in_row(first - 1, start, first * row, offset, inner)
    if first < last:
        yield first * row, Box((offset + first, *inner.offset), (last - first, *inner.shape))
    yield from _in_row(last, last * row, end, offset, inner)


def _in_row(number: int, start: int, end: int, offset: int, inner: Box) -> Iterator[tuple[int, Box]]:
    before = number * inner.volume
    for at, piece in pieces(start - before, end - before, inner):
        yield before + at, Box((offset + number, *piece.offset), (1, *piece.shape))
