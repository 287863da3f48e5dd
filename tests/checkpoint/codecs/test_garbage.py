"""What was stored may have been altered: it is refused, or gives as many bytes as were asked for."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline.checkpoint.codecs import CODECS, decode, encode
from wattline.checkpoint.codecs.ways import Packing
from wattline.checkpoint.errors import CheckpointError

CHANCE = np.random.default_rng(11)
COUNT = 3000
FLOATS = (CHANCE.standard_normal(COUNT) * 0.02).astype("<f4")
FLOATS[::100] = 0  # some exponents far from the others
RAW = FLOATS.view(np.uint8).data
BASE = (FLOATS * np.float32(1.001)).astype("<f4").view(np.uint8).data
SPARSE = np.where(CHANCE.random(len(RAW)) < 0.1, CHANCE.integers(0, 99, len(RAW)), 7).astype(np.uint8).data
WIDTHS = [4, 4, 1]
GOOD = [encode(RAW, 4, None), encode(RAW, 4, BASE), encode(SPARSE, 1, None)]


def try_to_decode(codec: str, stored: bytes, size: int = len(RAW), width: int = 4) -> None:
    """Only what is refused properly is let pass; that a whole chunk is the right one, its hash tells."""
    base = memoryview(bytes(size))
    with suppress(CheckpointError):
        decode(codec, stored, memoryview(bytearray(size)), width, base)


def packings(stored: bytes, width: int) -> set[int]:
    """Read by hand: whether lower halves are whole, then a byte and a length for each plane."""
    return {stored[1 + 5 * plane] for plane in range(width // 2 if stored[0] else width)}


def test_the_fuzzed_chunks_are_of_all_kinds() -> None:
    assert [codec for codec, _ in GOOD] == ["planes-zstd", "delta-planes-zstd", "planes-zstd"]
    used = [packings(stored, width) for (_, stored), width in zip(GOOD, WIDTHS, strict=True)]
    assert set().union(*used) >= {Packing.PLAIN, Packing.ZSTD, Packing.PAIRS, Packing.SPARSE}


@settings(max_examples=300, deadline=None)
@given(
    codec=st.sampled_from(sorted(CODECS)),
    stored=st.binary(max_size=400),
    size=st.integers(0, 100),
    width=st.sampled_from((1, 2, 4, 8, 16, 32)),
)
def test_random_bytes_raise_nothing_else(codec: str, stored: bytes, size: int, width: int) -> None:
    try_to_decode(codec, stored, size, width)


@settings(max_examples=300, deadline=None)
@given(
    which=st.integers(0, 2),
    at=st.one_of(st.integers(0, 60), st.integers(0, 100_000)),
    bit=st.integers(0, 7),
)
def test_flipped_bits_raise_nothing_else(which: int, at: int, bit: int) -> None:
    codec, stored = GOOD[which]
    altered = bytearray(stored)
    altered[at % len(altered)] ^= 1 << bit
    try_to_decode(codec, bytes(altered), width=WIDTHS[which])


@settings(max_examples=100, deadline=None)
@given(which=st.integers(0, 2), left=st.integers(0, 100_000), more=st.binary(max_size=4))
def test_a_chunk_cut_short_or_made_longer_is_refused(which: int, left: int, more: bytes) -> None:
    codec, stored = GOOD[which]
    short = stored[: left % len(stored)]
    for altered in (short, stored + b"\0" + more):
        with pytest.raises(CheckpointError):
            decode(codec, altered, memoryview(bytearray(len(RAW))), WIDTHS[which], BASE)


@pytest.mark.parametrize("codec", ["planes", "delta", "", "RAW", "x" * 1000])
def test_an_unknown_codec_is_refused_by_name(codec: str) -> None:
    with pytest.raises(CheckpointError, match="unknown codec"):
        decode(codec, b"", memoryview(bytearray(4)), 4, None)


@pytest.mark.parametrize("base", [None, memoryview(bytes(len(RAW) - 4))])
def test_a_difference_without_its_base_is_refused(base: memoryview | None) -> None:
    codec, stored = GOOD[1]
    with pytest.raises(CheckpointError, match="not there"):
        decode(codec, stored, memoryview(bytearray(len(RAW))), 4, base)


@pytest.mark.parametrize("others", [0, 3, 1000, 2**32 - 1])
def test_a_sparse_plane_that_lies_about_its_size_is_refused(others: int) -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(others % 200_000_000))
    bits = zstandard.ZstdCompressor().compress(bytes([255] * 125))
    plane = bytes([7]) + others.to_bytes(4, "little") + len(bits).to_bytes(4, "little") + bits + bomb
    stored = b"\0" + b"\4" + len(plane).to_bytes(4, "little") + plane
    into = memoryview(bytearray(1000))
    if others == len(into):
        return decode("planes-zstd", stored, into, 1, None)
    with pytest.raises(CheckpointError):
        decode("planes-zstd", stored, into, 1, None)
    return None


@pytest.mark.parametrize(("layout", "width"), [(1, 1), (1, 2), (2, 4), (255, 8)])
def test_an_unknown_layout_is_refused(layout: int, width: int) -> None:
    with pytest.raises(CheckpointError, match="laid out"):
        decode("planes-zstd", bytes([layout]) + bytes(100), memoryview(bytearray(16)), width, None)


@pytest.mark.parametrize("says_its_size", [True, False])
def test_a_bomb_takes_no_memory(says_its_size: bool) -> None:
    bomb = zstandard.ZstdCompressor(write_content_size=says_its_size).compress(bytes(200_000_000))
    stored = b"\0" + b"\2" + len(bomb).to_bytes(4, "little") + bomb
    into = memoryview(bytearray(1000))
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError):
            decode("planes-zstd", stored, into, 1, None)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_frame_that_lies_about_its_size_is_refused() -> None:
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(100_000)))
    told = zstandard.get_frame_parameters(bytes(frame)).content_size.to_bytes(4, "little")
    at = bytes(frame).index(told)
    frame[at : at + 4] = (1000).to_bytes(4, "little")
    stored = b"\0" + b"\2" + len(frame).to_bytes(4, "little") + bytes(frame)
    with pytest.raises(CheckpointError):
        decode("planes-zstd", stored, memoryview(bytearray(1000)), 1, None)
