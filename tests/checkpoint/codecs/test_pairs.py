"""Two bytes in one, and those that do not fit beside them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.checkpoint.codecs.pairs import find_lowest, pair, part
from wattline.checkpoint.errors import CheckpointError


@given(values=st.binary(min_size=1, max_size=400), lowest=st.integers(0, 255))
def test_a_plane_comes_back_whatever_lies_outside(values: bytes, lowest: int) -> None:
    plane = np.frombuffer(values, np.uint8)
    pairs, apart = pair(plane, lowest)
    assert len(pairs) == (len(plane) + 1) // 2
    assert part(pairs, lowest, apart, len(plane)).tobytes() == values


def test_a_plane_of_several_blocks_comes_back() -> None:
    plane = np.random.default_rng(3).integers(90, 107, 300_001, np.uint8)
    pairs, apart = pair(plane, 91)
    assert 0 < len(apart) < len(plane) / 5
    assert (part(pairs, 91, apart, len(plane)) == plane).all()


def test_bytes_kept_apart_are_in_order_wherever_they_lie() -> None:
    plane = np.full(600_003, 7, np.uint8)
    places = np.array([0, 1, 262_143, 262_144, 400_000, 599_999, 600_002])  # at borders of blocks too
    plane[places] = np.arange(100, 107)
    pairs, apart = pair(plane, 0)
    assert apart.tolist() == list(range(100, 107))
    assert (part(pairs, 0, apart, len(plane)) == plane).all()


@pytest.mark.parametrize(("first", "last"), [(100, 114), (241, 255), (0, 14), (0, 0)])
def test_the_fifteen_values_that_cover_most_are_found(first: int, last: int) -> None:
    counts = np.ones(256, np.intp)
    counts[first : last + 1] = 50
    lowest, left_out = find_lowest(counts)
    assert lowest <= first
    assert last < lowest + 15
    assert left_out == 256 - 15


def test_a_plane_that_lacks_bytes_is_refused() -> None:
    pairs, apart = pair(np.array([1, 2, 200, 3], np.uint8), 0)
    for wrong in (apart[:0], np.repeat(apart, 2)):
        with pytest.raises(CheckpointError, match="apart"):
            part(pairs, 0, wrong, 4)
