"""Numbers lie byte by byte, rotated, and come back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.checkpoint.codecs.planes import as_numbers, join, sample, split


@given(
    width=st.sampled_from((1, 2, 4, 8)),
    rotation=st.integers(0, 7),
    words=st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=50),
)
def test_what_is_split_can_be_joined(width: int, rotation: int, words: list[bytes]) -> None:
    numbers = np.frombuffer(b"".join(words), f"<u{width}")
    planes = np.empty((width, len(numbers)), np.uint8)
    split(numbers, rotation, planes)
    assert (join(list(planes), rotation) == numbers).all()


def test_rotated_by_one_a_float_has_its_exponent_in_the_highest_plane() -> None:
    floats = np.array([1.0, -1.5, 2.0, -0.25], "<f4")
    planes = np.empty((4, 4), np.uint8)
    split(floats.view("<u4"), 1, planes)
    assert planes[3].tolist() == [127, 127, 128, 125]
    assert (planes[0] & 1).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("width", "size", "taken_as"), [(4, 16, 4), (2, 16, 2), (8, 12, 1), (16, 64, 1), (1, 5, 1)]
)
def test_bytes_that_are_no_whole_numbers_are_taken_one_by_one(width: int, size: int, taken_as: int) -> None:
    assert as_numbers(memoryview(bytes(size)), width).itemsize == taken_as


def test_a_sample_reaches_from_the_first_number_to_the_last() -> None:
    some = sample(np.arange(1000, dtype="<u4"), 100)
    assert len(some) == 100
    assert (some[0], some[-1]) == (0, 999)
    assert (sample(some, 100) == some).all()
