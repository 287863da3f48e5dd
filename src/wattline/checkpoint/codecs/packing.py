"""Packing: in how few bytes can one plane be stored?

A plane is one repeated byte, noise, or something in between. Exponents have skewed bytes but no repeats worth
a search: with a tiny table of matches zstd is little more than a Huffman coder, and there it is both smaller
and faster than at its lowest level. Other planes do repeat; for those it searches.
"""

from __future__ import annotations

import struct
import threading
from enum import IntEnum

import numpy as np
import zstandard

from wattline.checkpoint.codecs.pairs import find_lowest, pair, part
from wattline.checkpoint.codecs.planes import Bytes, sample
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
_SAMPLE_BYTES = 2048
_LEFT_OUT = 1 / 64  # at most so many bytes may be kept apart from pairs
_WORTHWHILE = 0.98  # less is not worth the time to compress and to restore
_WORTH_SEARCHING = 0.9  # it takes three times as long
_APART = struct.Struct("<BI")  # the lowest value in pairs, and how many bytes are kept apart


class Packing(IntEnum):
    """How a plane is stored. The numbers are part of the format."""

    PLAIN = 0
    REPEATED = 1
    ZSTD = 2
    PAIRS = 3


class _Contexts(threading.local):
    """Those of one thread: zstd's must not be shared, and to make them takes as long as a small plane."""

    def __init__(self) -> None:
        self.huffman = zstandard.ZstdCompressor(compression_params=_HUFFMAN)
        self.search = zstandard.ZstdCompressor(compression_params=_SEARCH)


_CONTEXTS = _Contexts()


def pack(plane: Bytes) -> tuple[Packing, bytes | memoryview]:
    """A sample decides how; the whole plane is compressed once or never."""
    some = sample(plane, _SAMPLE_BYTES)
    counts = np.bincount(some, minlength=256)
    if counts[some[0]] == len(some) and (plane == some[0]).all():
        return Packing.REPEATED, some[:1].data
    packing, packed = _compress(plane, some, *find_lowest(counts))
    # The sample may have missed what the rest is like.
    return (packing, packed) if len(packed) < len(plane) else (Packing.PLAIN, plane.data)


def _compress(plane: Bytes, some: Bytes, lowest: int, left_out: int) -> tuple[Packing, bytes | memoryview]:
    if left_out <= _LEFT_OUT * len(some):
        if compressor := _choose(pair(some, lowest)[0], len(some)):
            pairs, apart = pair(plane, lowest)
            head = _APART.pack(lowest, len(apart))
            return Packing.PAIRS, b"".join((head, apart.data, compressor.compress(pairs.data)))
    elif compressor := _choose(some, len(some)):
        return Packing.ZSTD, compressor.compress(plane.data)
    return Packing.PLAIN, plane.data


def _choose(some: Bytes, from_bytes: int) -> zstandard.ZstdCompressor | None:
    """What compresses these well; None where nothing does."""
    with_huffman = len(_CONTEXTS.huffman.compress(some.data))
    with_search = len(_CONTEXTS.search.compress(some.data))
    if min(with_huffman, with_search) > _WORTHWHILE * from_bytes:
        return None
    return _CONTEXTS.search if with_search < _WORTH_SEARCHING * with_huffman else _CONTEXTS.huffman


def unpack(packing: int, stored: memoryview, size_bytes: int) -> Bytes:
    """The plane, or CheckpointError; never takes more memory than a few times the plane's length."""
    if packing == Packing.PLAIN and len(stored) == size_bytes:
        return np.frombuffer(stored, np.uint8)
    if packing == Packing.REPEATED and len(stored) == 1:
        return np.broadcast_to(np.frombuffer(stored, np.uint8), size_bytes)
    if packing == Packing.ZSTD:
        return _decompress(stored, size_bytes)
    if packing == Packing.PAIRS and len(stored) >= _APART.size:
        lowest, apart = _APART.unpack_from(stored)
        rest = stored[_APART.size :]
        pairs = _decompress(rest[apart:], (size_bytes + 1) // 2)
        return part(pairs, lowest, np.frombuffer(rest[:apart], np.uint8), size_bytes)
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
