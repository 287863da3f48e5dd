"""Codecs: how is a chunk stored in fewer bytes, and got back to the bit?"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from wattline.checkpoint.codecs.choosing import Plan, choose_plan
from wattline.checkpoint.codecs.difference import add, subtract
from wattline.checkpoint.codecs.packing import pack, pack_at_once, unpack
from wattline.checkpoint.codecs.planes import Bytes, Numbers, as_numbers, half_of, join, split
from wattline.checkpoint.codecs.ways import choose_way
from wattline.checkpoint.errors import CheckpointError

# Names are in manifests for ever: another layout of bytes is another name.
RAW = "raw"
PLANES = "planes-zstd"
DELTA = "delta-planes-zstd"
CODECS = frozenset({RAW, PLANES, DELTA})

_WHOLE_LOW = struct.Struct("<B")  # whether the lower halves of the numbers come first, as they are
_PLANE = struct.Struct("<BI")  # how it is packed, and in how many bytes
_TINY_BYTES = 8192  # biases and norms: many, and together next to nothing
_BLOCK_NUMBERS = 128 * 1024


def encode(raw: memoryview, width: int, base: memoryview | None) -> tuple[str, bytes]:
    """The codec that was used, and what to store; whether it used the base shows in the codec's name.

    `width` is the size of one number in bytes. A base is as long as `raw`.
    """
    if len(raw) <= _TINY_BYTES:
        return RAW, bytes(raw)
    numbers = as_numbers(raw, width)
    former = None if base is None else as_numbers(base, width)
    plan = choose_plan(numbers, former)
    stored = _write(numbers, former if plan.from_base else None, plan)
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


def _write(numbers: Numbers, base: Numbers | None, plan: Plan) -> bytes:
    ways = [choose_way(seen) for seen in plan.planes]
    low = np.empty(len(numbers), half_of(numbers)) if plan.whole_low else None
    packed = pack_at_once(numbers, ways) if base is None else None
    if packed is None:
        planes = np.empty((len(ways), len(numbers)), np.uint8)
        _split_all(numbers, base, low, planes)
        packed = [pack(plane, way) for plane, way in zip(planes, ways, strict=True)]
    heads = [_WHOLE_LOW.pack(plan.whole_low)]
    stored: list[bytes | memoryview] = [] if low is None else [low.data]
    for packing, parts in packed:
        heads.append(_PLANE.pack(packing, sum(map(len, parts))))
        stored += parts
    return b"".join((*heads, *stored))


def _split_all(numbers: Numbers, base: Numbers | None, low: Numbers | None, planes: Bytes) -> None:
    spare = np.empty(min(len(numbers), _BLOCK_NUMBERS), numbers.dtype)
    for block in _blocks(numbers):
        some = numbers[block]
        room = spare[: len(some)]
        if base is not None:
            some = subtract(some, base[block], room)
        split(some, base is None, None if low is None else low[block], planes[:, block], room)


def _read(stored: memoryview, base: Numbers | None, target: Numbers) -> None:
    low, planes = _read_parts(stored, target)
    for block in _blocks(target):
        parts = [plane[block] for plane in planes]
        some = join(target.itemsize, base is None, None if low is None else low[block], parts)
        target[block] = some if base is None else add(some, base[block])


def _read_parts(stored: memoryview, target: Numbers) -> tuple[Numbers | None, list[Bytes]]:
    width = target.itemsize
    whole_low = stored[0] if len(stored) else 0
    if whole_low > (width > 2):
        raise CheckpointError(f"numbers of {width} bytes are laid out in an unknown way, {whole_low}")
    low_bytes = len(target) * width // 2 if whole_low else 0
    heads_end = _WHOLE_LOW.size + (width // 2 if whole_low else width) * _PLANE.size
    if len(stored) < heads_end:
        raise CheckpointError(f"a chunk ends after {len(stored)} bytes, within its head")
    heads = list(_PLANE.iter_unpack(stored[_WHOLE_LOW.size : heads_end]))
    at = heads_end + low_bytes
    if at + sum(size for _, size in heads) != len(stored):
        raise CheckpointError(f"the parts of a chunk do not add up to its {len(stored)} bytes")
    low = np.frombuffer(stored[heads_end:at], half_of(target)) if whole_low else None
    planes = []
    for packing, size in heads:
        planes.append(unpack(packing, stored[at : at + size], len(target)))
        at += size
    return low, planes


def _blocks(numbers: Numbers) -> Iterator[slice]:
    """Pieces so small that what is computed in between stays in the processor's cache."""
    return (slice(at, at + _BLOCK_NUMBERS) for at in range(0, len(numbers), _BLOCK_NUMBERS))
