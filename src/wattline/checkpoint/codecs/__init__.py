"""Codecs: how is a chunk stored in fewer bytes, and got back to the bit?"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from wattline.checkpoint.codecs.choosing import choose_plan
from wattline.checkpoint.codecs.difference import add, subtract
from wattline.checkpoint.codecs.packing import pack, unpack
from wattline.checkpoint.codecs.planes import Numbers, as_numbers, join, split
from wattline.checkpoint.errors import CheckpointError

# Names are in manifests for ever: another layout of bytes is another name.
RAW = "raw"
PLANES = "planes-zstd"
DELTA = "delta-planes-zstd"
CODECS = frozenset({RAW, PLANES, DELTA})

_ROTATION = struct.Struct("<B")
_PLANE = struct.Struct("<BI")  # how it is packed, and in how many bytes
_TINY_BYTES = 8192  # biases and norms: many, and together next to nothing
_BLOCK_BYTES = 128 * 1024


def encode(raw: memoryview, width: int, base: memoryview | None) -> tuple[str, bytes]:
    """The codec that was used, and what to store; whether it used the base shows in the codec's name.

    `width` is the size of one number in bytes. A base is as long as `raw`.
    """
    if len(raw) <= _TINY_BYTES:
        return RAW, bytes(raw)
    numbers = as_numbers(raw, width)
    former = None if base is None else as_numbers(base, width)
    plan = choose_plan(numbers, former)
    stored = _write(numbers, former if plan.from_base else None, plan.rotation)
    if len(stored) >= len(raw):
        return RAW, bytes(raw)
    return DELTA if plan.from_base else PLANES, stored


def decode(codec: str, stored: bytes, into: memoryview, width: int, base: memoryview | None) -> None:
    """Fill `into` with the raw bytes; raises CheckpointError where what was stored is no such thing."""
    if codec not in CODECS:
        raise CheckpointError(f"a chunk has the unknown codec {codec[:40]!r}")
    if codec == RAW:
        if len(stored) != len(into):
            raise CheckpointError(f"a chunk of {len(into)} bytes has {len(stored)}")
        into[:] = stored
        return
    if codec == DELTA and (base is None or len(base) != len(into)):
        raise CheckpointError(f"a chunk of {len(into)} bytes is a difference to one that is not there")
    target = as_numbers(into, width)
    if not len(target):
        raise CheckpointError(f"an empty chunk has {len(stored)} bytes")
    former = as_numbers(base, width) if codec == DELTA and base is not None else None
    _read(memoryview(stored), former, target)


def uses_base(codec: str) -> bool:
    return codec.startswith("delta")


def _write(numbers: Numbers, base: Numbers | None, rotation: int) -> bytes:
    planes = np.empty((numbers.itemsize, len(numbers)), np.uint8)
    for block in _blocks(numbers):
        some = numbers[block] if base is None else subtract(numbers[block], base[block])
        split(some, rotation, planes[:, block])
    packed = [pack(plane) for plane in planes]
    heads = [_PLANE.pack(packing, len(data)) for packing, data in packed]
    return b"".join([_ROTATION.pack(rotation), *heads, *(data for _, data in packed)])


def _read(stored: memoryview, base: Numbers | None, target: Numbers) -> None:
    heads_end = _ROTATION.size + target.itemsize * _PLANE.size
    if len(stored) < heads_end:
        raise CheckpointError(f"a chunk ends after {len(stored)} bytes, within its head")
    (rotation,) = _ROTATION.unpack_from(stored)
    if rotation > 7:
        raise CheckpointError(f"a chunk is rotated by {rotation} bits: at most 7 make sense")
    heads = list(_PLANE.iter_unpack(stored[_ROTATION.size : heads_end]))
    if sum(size for _, size in heads) != len(stored) - heads_end:
        raise CheckpointError(f"the planes of a chunk do not add up to its {len(stored)} bytes")
    planes, at = [], heads_end
    for packing, size in heads:
        planes.append(unpack(packing, stored[at : at + size], len(target)))
        at += size
    for block in _blocks(target):
        some = join([plane[block] for plane in planes], rotation)
        target[block] = some if base is None else add(some, base[block])


def _blocks(numbers: Numbers) -> Iterator[slice]:
    """Pieces so small that what is computed in between stays in the processor's cache."""
    step = _BLOCK_BYTES // numbers.itemsize
    return (slice(start, start + step) for start in range(0, len(numbers), step))
