"""Packing: in how few bytes can a plane be stored, and how is it got back?"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import zstandard

from wattline.checkpoint.codecs.kernel import split_and_pair
from wattline.checkpoint.codecs.pairs import pair, part
from wattline.checkpoint.codecs.planes import Bytes, Numbers
from wattline.checkpoint.codecs.sparse import put_back, take_out
from wattline.checkpoint.codecs.ways import CONTEXTS, Packing, Way
from wattline.checkpoint.errors import CheckpointError

_LEAST_WINDOW_BYTES = 1024  # zstd knows no smaller one
_PAIRS = struct.Struct("<BI")  # the lowest value, and how many bytes are kept apart
_SPARSE = struct.Struct("<BII")  # the frequent byte, how many others there are, and the size of the bits

Parts = tuple[bytes | memoryview, ...]  # stored one after the other
Packed = tuple[Packing, Parts]


def pack(plane: Bytes, way: Way) -> Packed:
    """Another way than the one chosen where the sample missed what the rest is like."""
    if way.packing == Packing.REPEATED and (plane == way.byte).all():
        return Packing.REPEATED, (plane[:1].data,)
    packing, parts = _compress(plane, way)
    return (packing, parts) if _size(parts) < len(plane) else (Packing.PLAIN, (plane.data,))


def pack_at_once(numbers: Numbers, ways: Sequence[Way]) -> list[Packed] | None:
    """Both planes of numbers of two bytes, as `split` and `pack` would; None where it takes those two.

    That is without compiled code, and where the planes are no floats': noise below and exponents above.
    """
    if numbers.itemsize != 2 or [way.packing for way in ways] != [Packing.PLAIN, Packing.PAIRS]:
        return None
    lowest = ways[1].byte
    done = split_and_pair(numbers, lowest)
    if done is None:
        return None
    rest, pairs, apart = done
    parts = _pack_pairs(lowest, pairs, apart)
    if _size(parts) >= len(numbers):
        return None  # the sample was like nothing else, and exponents will be plain
    return [(Packing.PLAIN, (rest.data,)), (Packing.PAIRS, parts)]


def _size(parts: Parts) -> int:
    return sum(map(len, parts))


def _compress(plane: Bytes, way: Way) -> Packed:
    match way.packing:
        case Packing.PLAIN:
            return Packing.PLAIN, (plane.data,)
        case Packing.SPARSE:
            return Packing.SPARSE, _pack_sparse(plane, way.byte)
        case Packing.PAIRS:
            return Packing.PAIRS, _pack_pairs(way.byte, *pair(plane, way.byte))
        case _:
            context = CONTEXTS.search if way.search else CONTEXTS.huffman
            return Packing.ZSTD, (context.compress(plane.data),)


def _pack_pairs(lowest: int, pairs: Bytes, apart: Bytes) -> Parts:
    return _PAIRS.pack(lowest, len(apart)), apart.data, CONTEXTS.huffman.compress(pairs.data)


def _pack_sparse(plane: Bytes, frequent: int) -> Parts:
    bits, others = take_out(plane, frequent)
    packed = CONTEXTS.huffman.compress(bits.data)
    head = _SPARSE.pack(frequent, len(others), len(packed))
    return head, packed, CONTEXTS.huffman.compress(others.data)


def unpack(packing: int, stored: memoryview, size_bytes: int) -> Bytes:
    """The plane, or CheckpointError; never takes more memory than a few times the plane's length."""
    if packing == Packing.PLAIN and len(stored) == size_bytes:
        return np.frombuffer(stored, np.uint8)
    if packing == Packing.REPEATED and len(stored) == 1:
        return np.broadcast_to(np.frombuffer(stored, np.uint8), size_bytes)
    if packing == Packing.ZSTD:
        return _decompress(stored, size_bytes)
    if packing == Packing.PAIRS and len(stored) >= _PAIRS.size:
        lowest, apart = _PAIRS.unpack_from(stored)
        rest = stored[_PAIRS.size :]
        pairs = _decompress(rest[apart:], (size_bytes + 1) // 2)
        return part(pairs, lowest, np.frombuffer(rest[:apart], np.uint8), size_bytes)
    if packing == Packing.SPARSE and len(stored) >= _SPARSE.size:
        frequent, others, bits_bytes = _SPARSE.unpack_from(stored)
        rest = stored[_SPARSE.size :]
        if others <= size_bytes:
            bits = _decompress(rest[:bits_bytes], (size_bytes + 7) // 8)
            return put_back(bits, _decompress(rest[bits_bytes:], others), frequent, size_bytes)
    raise CheckpointError(
        f"a plane of {size_bytes} bytes is stored in {len(stored)}, in a way numbered {packing}"
    )


def _decompress(stored: memoryview, size_bytes: int) -> Bytes:
    try:
        # The frame says how much will be allocated, so it is asked before.
        told = zstandard.get_frame_parameters(stored).content_size
        if told != size_bytes:
            raise CheckpointError(f"{size_bytes} compressed bytes are said to be {told}")
        decompressor = zstandard.ZstdDecompressor(max_window_size=max(size_bytes, _LEAST_WINDOW_BYTES))
        plane = decompressor.decompress(stored, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CheckpointError(f"{len(stored)} bytes cannot be decompressed: {error}") from error
    if len(plane) != size_bytes:
        raise CheckpointError(f"{size_bytes} compressed bytes are {len(plane)}")
    return np.frombuffer(plane, np.uint8)
