"""Ways: how shall a plane be packed, by what was seen of it?

A plane is one repeated byte, noise, or something in between. Most have skewed bytes but no repeats worth a
search: with a tiny table of matches zstd is little more than a Huffman coder, and there it is both smaller
and faster than at its lowest level. It is given as little as can be: pairs, or the rest of a sparse plane.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from enum import IntEnum

import zstandard

from wattline.checkpoint.codecs.pairs import find_lowest
from wattline.checkpoint.codecs.sampling import Seen

_HUFFMAN = zstandard.ZstdCompressionParameters(
    strategy=zstandard.STRATEGY_FAST,
    window_log=18,
    hash_log=6,
    min_match=7,
    target_length=0,  # with anything more zstd leaves literals as they are
)
_SEARCH = zstandard.ZstdCompressionParameters.from_level(1)
_WORTHWHILE = 0.96  # of a sample; noise, seen so little of, has an entropy of 0.977
_WORTH_SEARCHING = 0.9  # it takes three times as long
_FEW_OTHERS = 1 / 128  # below, zstd is quick with the long runs
_MANY_OTHERS = 1 / 2
_LEFT_OUT = 1 / 64  # at most so many bytes may be kept apart from pairs


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


CONTEXTS = _Contexts()


@dataclass(frozen=True, slots=True)
class Way:
    """How a plane shall be packed."""

    packing: Packing
    byte: int = 0  # the repeated or frequent one, or the lowest of pairs
    search: bool = False  # for repeats


def choose_way(seen: Seen) -> Way:
    """By what was seen of a plane, so that the whole of it is compressed once or never."""
    frequent = int(seen.counts.argmax())
    others = 1 - int(seen.counts[frequent]) / len(seen.some)
    if others < _FEW_OTHERS:
        return Way(Packing.ZSTD if others else Packing.REPEATED, frequent)
    with_search = len(CONTEXTS.search.compress(seen.some.data)) / len(seen.some)
    if min(with_search, seen.entropy) > _WORTHWHILE:
        return Way(Packing.PLAIN)
    if with_search < _WORTH_SEARCHING * seen.entropy:
        return Way(Packing.ZSTD, search=True)
    if others < _MANY_OTHERS:
        return Way(Packing.SPARSE, frequent)
    lowest, left_out = find_lowest(seen.counts)
    if left_out <= _LEFT_OUT * len(seen.some):
        return Way(Packing.PAIRS, lowest)
    return Way(Packing.ZSTD)
