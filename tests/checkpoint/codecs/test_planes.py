"""Numbers lie byte by byte, and come back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.checkpoint.codecs.planes import as_numbers, half_of, join, split, turn


@given(
    width=st.sampled_from((1, 2, 4, 8)),
    turned=st.booleans(),
    whole_low=st.booleans(),
    words=st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=50),
)
def test_what_is_split_can_be_joined(width: int, turned: bool, whole_low: bool, words: list[bytes]) -> None:
    numbers = np.frombuffer(b"".join(words), f"<u{width}")
    low = np.empty(len(numbers), half_of(numbers)) if whole_low and width > 2 else None
    planes = np.empty((width if low is None else width // 2, len(numbers)), np.uint8)
    split(numbers, turned, low, planes, np.empty_like(numbers))
    assert (join(width, turned, low, list(planes)) == numbers).all()


@given(width=st.sampled_from((1, 2, 4, 8)), words=st.lists(st.binary(min_size=8, max_size=8), min_size=1))
def test_numbers_that_are_turned_have_the_planes_of_a_turned_split(width: int, words: list[bytes]) -> None:
    numbers = np.frombuffer(b"".join(words), f"<u{width}")
    planes, expected = (np.empty((width, len(numbers)), np.uint8) for _ in range(2))
    split(numbers, True, None, planes, np.empty_like(numbers))
    split(turn(numbers), False, None, expected, np.empty_like(numbers))
    assert (planes == expected).all()


def test_a_turned_float_has_its_exponent_in_the_highest_plane() -> None:
    floats = np.array([1.0, -1.5, 2.0, -0.25], "<f4")
    planes = np.empty((4, 4), np.uint8)
    split(floats.view("<u4"), True, None, planes, np.empty(4, "<u4"))
    assert planes[3].tolist() == [127, 127, 128, 125]
    assert (planes[2] & 1).tolist() == [0, 1, 0, 1]


def test_the_numbers_may_be_the_room() -> None:
    numbers = np.arange(300, dtype="<u4") * 0x01020304
    planes = np.empty((4, 300), np.uint8)
    room = numbers.copy()
    split(room, True, None, planes, room)
    assert (join(4, True, None, list(planes)) == numbers).all()


@pytest.mark.parametrize(
    ("width", "size", "taken_as"), [(4, 16, 4), (2, 16, 2), (8, 12, 1), (16, 64, 1), (1, 5, 1)]
)
def test_bytes_that_are_no_whole_numbers_are_taken_one_by_one(width: int, size: int, taken_as: int) -> None:
    assert as_numbers(memoryview(bytes(size)), width).itemsize == taken_as
