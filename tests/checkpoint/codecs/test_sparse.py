"""The frequent byte is taken out of a plane and put back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.checkpoint.codecs.sparse import put_back, take_out
from wattline.checkpoint.errors import CheckpointError


@given(values=st.binary(min_size=1, max_size=400), frequent=st.integers(0, 255))
def test_a_plane_comes_back_whatever_is_taken_out(values: bytes, frequent: int) -> None:
    bits, others = take_out(np.frombuffer(values, np.uint8), frequent)
    assert len(bits) == (len(values) + 7) // 8
    assert len(others) == len(values) - values.count(frequent)
    assert put_back(bits, others, frequent, len(values)).tobytes() == values


def test_a_plane_of_several_blocks_comes_back() -> None:
    plane = np.random.default_rng(3).integers(0, 3, 200_001, np.uint8)
    bits, others = take_out(plane, 1)
    assert (put_back(bits, others, 1, len(plane)) == plane).all()


def test_a_plane_that_lacks_bytes_is_refused() -> None:
    bits, others = take_out(np.array([0, 2, 0, 3], np.uint8), 0)
    for wrong in (others[:1], np.repeat(others, 2)):
        with pytest.raises(CheckpointError, match="apart"):
            put_back(bits, wrong, 0, 4)
