"""Packing: in how few bytes can one plane be stored?

A plane is one repeated byte, noise, or something in between. Most have skewed bytes but no repeats worth a
search: with a tiny table of matches zstd is little more than a Huffman coder, and there it is both smaller
and faster than at its lowest level. It is given as little as can be: pairs, or the rest of a sparse plane.
"""

from __future__ import annotations

import struct
import threading
from enum import IntEnum

import numpy as np
import zstandard

from wattline.checkpoint.codecs.pairs import find_lowest, pair, part
from wattline.checkpoint.codecs.planes import Bytes
from wattline.checkpoint.codecs.sampling import Seen
from wattline.checkpoint.codecs.sparse import put_back, take_out
from wattline.checkpoint.errors import CheckpointError

_HUFFMAN = zstandard.ZstdCompressionParameters(
    strategy=zstandard.STRATEGY_FAST,
    window_log=18,
    hash_log=6,
    min_match=7,
    target_length=0,  # with anything more zstd leaves literals as they are
)
_SEARCH = zstandard.ZstdCompressionParameters.from_level(1)
_LEAST_WINDOW_BYTES = 1024  # zstd knows no smaller one
_WORTHWHILE = 0.96  # of a sample; noise, seen so little of, has an entropy of 0.977
_WORTH_SEARCHING = 0.9  # it takes three times as long
_FEW_OTHERS = 1 / 128  # below, zstd is quick with the long runs
_MANY_OTHERS = 1 / 2
_LEFT_OUT = 1 / 64  # at most so many bytes may be kept apart from pairs
_PAIRS = struct.Struct("<BI")  # the lowest value, and how many bytes are kept apart
_SPARSE = struct.Struct("<BII")  # the frequent byte, how many others there are, and the size of the bits


class Packing(IntEnum):
    """How a plane is stored. The numbers are part of the format."""

    PLAIN = 0
    REPEATED = 1
    ZSTD = 2
    PAIRS = 3
    SPARSE = 4


class _Contexts(threading.local):
    """Those of one thread: zstd's must not be shared, and to make them takes as long as a small plane."""

    def __init__(self) -> None:
        self.huffman = zstandard.ZstdCompressor(compression_params=_HUFFMAN)
        self.search = zstandard.ZstdCompressor(compression_params=_SEARCH)


_CONTEXTS = _Contexts()


def pack(plane: Bytes, seen: Seen) -> tuple[Packing, bytes | memoryview]:
    """What was seen of it decides how; the whole plane is compressed once or never."""
    frequent = int(seen.counts.argmax())
    others = 1 - int(seen.counts[frequent]) / len(seen.some)
    if not others and (plane == frequent).all():
        return Packing.REPEATED, plane[:1].data
    packing, packed = _compress(plane, seen, frequent, others)
    # The sample may have missed what the rest is like.
    return (packing, packed) if len(packed) < len(plane) else (Packing.PLAIN, plane.data)


def _compress(plane: Bytes, seen: Seen, frequent: int, others: float) -> tuple[Packing, bytes | memoryview]:
    huffman, search = _CONTEXTS.huffman, _CONTEXTS.search
    if others < _FEW_OTHERS:
        return Packing.ZSTD, huffman.compress(plane.data)
    with_search = len(search.compress(seen.some.data)) / len(seen.some)
    if min(with_search, seen.entropy) > _WORTHWHILE:
        return Packing.PLAIN, plane.data
    if with_search < _WORTH_SEARCHING * seen.entropy:
        return Packing.ZSTD, search.compress(plane.data)
    if others < _MANY_OTHERS:
        return Packing.SPARSE, _pack_sparse(plane, frequent)
    lowest, left_out = find_lowest(seen.counts)
    if left_out <= _LEFT_OUT * len(seen.some):
        return Packing.PAIRS, _pack_pairs(plane, lowest)
    return Packing.ZSTD, huffman.compress(plane.data)


def _pack_pairs(plane: Bytes, lowest: int) -> bytes:
    pairs, apart = pair(plane, lowest)
    return b"".join((_PAIRS.pack(lowest, len(apart)), apart.data, _CONTEXTS.huffman.compress(pairs.data)))


def _pack_sparse(plane: Bytes, frequent: int) -> bytes:
    bits, others = take_out(plane, frequent)
    packed = _CONTEXTS.huffman.compress(bits.data)
    head = _SPARSE.pack(frequent, len(others), len(packed))
    return b"".join((head, packed, _CONTEXTS.huffman.compress(others.data)))


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
