"""Chunks come back to the bit, whatever they are made of, and garbage is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wattline.checkpoint.codecs import CODECS, decode, encode, uses_base

CHANCE = np.random.default_rng(7)
WIDTHS = (1, 2, 4, 8, 16, 32)


def view(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def weights(count: int, dtype: str = "<f4") -> npt.NDArray[Any]:
    return (CHANCE.standard_normal(count) * 0.02).astype(dtype)


def brain_floats(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return (numbers.view("<u4") >> 16).astype("<u2")


def restored(codec: str, stored: bytes, size: int, width: int, base: memoryview | None) -> bytes:
    into = bytearray(size)
    decode(codec, stored, memoryview(into), width, base)
    return bytes(into)


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo("f4").tiny / 2, -np.finfo("f4").max] * 900, "<f4"
)
CHUNKS = {
    "normal floats": (weights(50_001), 4),
    "doubles": (weights(20_001, "<f8"), 8),
    "half floats": (weights(20_001, "<f2"), 2),
    "brain floats": (brain_floats(weights(50_001)), 2),
    "special floats": (SPECIAL, 4),
    "zeros": (np.zeros(5000, "<f4"), 4),
    "counting": (np.arange(-30_000, 30_000, dtype="<i8"), 8),
    "noise": (CHANCE.integers(0, 256, 100_003, np.uint8), 1),
    "booleans": (CHANCE.random(50_000) < 0.1, 1),
    "text": (np.frombuffer(b"the quick brown fox. " * 1000, np.uint8), 1),
    "long doubles": (CHANCE.integers(0, 9, 64_000, np.uint8), 16),
    "no whole numbers": (CHANCE.integers(0, 9, 70_001, np.uint8), 4),
    "several blocks": (weights(300_001), 4),
    "a few bytes": (CHANCE.integers(0, 9, 3, np.uint8), 2),
    "nothing": (np.zeros(0, np.uint8), 4),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_a_chunk_comes_back_to_the_bit(name: str) -> None:
    array, width = CHUNKS[name]
    raw = view(array)
    codec, stored = encode(raw, width, None)
    assert codec in CODECS
    assert not uses_base(codec)
    assert len(stored) <= len(raw)
    assert restored(codec, stored, len(raw), width, None) == raw.tobytes()


@pytest.mark.parametrize("name", CHUNKS)
def test_a_chunk_comes_back_from_its_base_to_the_bit(name: str) -> None:
    array, width = CHUNKS[name]
    raw = view(array)
    base = np.frombuffer(raw, np.uint8).copy()
    base[::7] ^= 1
    codec, stored = encode(raw, width, base.data)
    given_base = base.data if uses_base(codec) else None
    assert restored(codec, stored, len(raw), width, given_base) == raw.tobytes()


@settings(max_examples=150, deadline=None)
@given(
    pattern=st.binary(min_size=1, max_size=300),
    times=st.integers(1, 300),
    width=st.sampled_from(WIDTHS),
    flips=st.lists(st.integers(0, 100_000), max_size=20),
)
def test_any_bytes_come_back(pattern: bytes, times: int, width: int, flips: list[int]) -> None:
    raw = bytearray(pattern * times)
    base = memoryview(bytes(raw))
    for flip in flips:
        raw[flip % len(raw)] ^= 0x80
    for former in (None, base):
        codec, stored = encode(memoryview(raw), width, former)
        assert restored(codec, stored, len(raw), width, former) == raw


def test_floats_shrink_by_their_exponents() -> None:
    raw = view(weights(1 << 18))
    assert len(encode(raw, 4, None)[1]) < 0.84 * len(raw)
    halves = view(brain_floats(weights(1 << 18)))
    assert len(encode(halves, 2, None)[1]) < 0.68 * len(halves)


def test_a_small_change_is_stored_as_a_difference() -> None:
    before = weights(1 << 18)
    after = (before + weights(1 << 18) * np.float32(0.001)).astype("<f4")
    codec, stored = encode(view(after), 4, view(before))
    assert uses_base(codec)
    assert len(stored) < 0.8 * len(encode(view(after), 4, None)[1])


def test_a_weight_that_crosses_zero_is_a_small_change_too() -> None:
    before = weights(1 << 16)
    flipped = np.where(CHANCE.random(1 << 16) < 0.05, -before, before).astype("<f4")
    codec, stored = encode(view(flipped), 4, view(before))
    assert uses_base(codec)
    assert len(stored) < 0.05 * flipped.nbytes


def test_a_base_that_does_not_help_is_not_used() -> None:
    codec, _ = encode(view(weights(1 << 16)), 4, view(weights(1 << 16)))
    assert not uses_base(codec)


def test_noise_and_tiny_chunks_are_stored_as_they_are() -> None:
    noise = view(CHANCE.integers(0, 256, 1 << 16, np.uint8))
    assert encode(noise, 4, None) == ("raw", noise.tobytes())
    tiny = view(np.zeros(16, "<f4"))
    assert encode(tiny, 4, tiny) == ("raw", bytes(64))


def test_a_chunk_that_is_unlike_its_sample_grows_by_nothing() -> None:
    raw = CHANCE.integers(0, 256, 1 << 20, np.uint8)
    gap = len(raw) // 3
    for at in range(4):
        raw[max(0, at * gap - 2048) :][:4096] = 7
    codec, stored = encode(raw.data, 1, None)
    assert len(stored) <= len(raw)
    assert restored(codec, stored, len(raw), 1, None) == raw.tobytes()


def test_threads_encode_side_by_side() -> None:
    chunks = [view(weights(40_000 + number)) for number in range(16)]
    alone = [encode(chunk, 4, None) for chunk in chunks]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda chunk: encode(chunk, 4, None), chunks * 4)) == alone * 4


def test_what_was_stored_once_can_always_be_read() -> None:
    """The layout behind a name is in manifests for ever; these bytes were written by hand from it."""
    numbers = np.array([3, 4, 5, 6], "<u2")
    turned_by_one = bytes([0, 0, 4, 0, 0, 0, 1, 1, 0, 0, 0, 6, 8, 10, 12, 0])
    assert restored("planes-zstd", turned_by_one, 8, 2, None) == numbers.tobytes()
    # Less the base they are 1, -1, 0, -1, and 0x80 is added to each byte.
    base = view(np.array([2, 5, 5, 7], "<u2"))
    differences = bytes([0, 0, 4, 0, 0, 0, 1, 1, 0, 0, 0, 0x81, 0x7F, 0x80, 0x7F, 0x80])
    assert restored("delta-planes-zstd", differences, 8, 2, base) == numbers.tobytes()
    # The lower halves come first as they are, then the planes of the upper ones.
    wide = np.array([0x80000003, 0x40000004], "<u4")
    halves = bytes([1, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 4, 0, 1, 0, 0, 0x80])
    assert restored("planes-zstd", halves, 8, 4, None) == wide.tobytes()


def a_sparse_plane(share: float, count: int = 50_000) -> npt.NDArray[np.uint8]:
    others = CHANCE.integers(0, 256, count, np.uint8)
    return np.where(CHANCE.random(count) < share, others, 9).astype(np.uint8)


@pytest.mark.parametrize("share", [0.00005, 0.005, 0.03, 0.1, 0.4, 0.7])
def test_few_or_many_exceptions_to_one_byte_come_back(share: float) -> None:
    plane = a_sparse_plane(share)
    codec, stored = encode(view(plane), 1, None)
    assert restored(codec, stored, len(plane), 1, None) == plane.tobytes()
    entropy_of_where = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    assert len(stored) < (1.15 * (entropy_of_where / 8 + share) + 0.01) * len(plane)
