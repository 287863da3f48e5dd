"""Small changes are small numbers, and every change can be undone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.checkpoint.codecs.difference import add, subtract


@given(
    width=st.sampled_from((1, 2, 4, 8)),
    pairs=st.lists(
        st.tuples(st.binary(min_size=8, max_size=8), st.binary(min_size=8, max_size=8)), min_size=1
    ),
)
def test_what_is_subtracted_can_be_added(width: int, pairs: list[tuple[bytes, bytes]]) -> None:
    numbers, base = (np.frombuffer(b"".join(side), f"<u{width}") for side in zip(*pairs, strict=True))
    change = subtract(numbers, base)
    assert change.dtype == numbers.dtype
    assert (add(change, base) == numbers).all()


@pytest.mark.parametrize(
    ("before", "after"),
    [(0.5, np.nextafter(np.float32(0.5), np.float32(1))), (-3e-9, -3e-9), (0.25, -0.25), (0.0, -0.0)],
)
def test_a_neighbour_differs_in_the_lowest_byte_and_in_the_bit_of_the_sign(
    before: float, after: float
) -> None:
    old, new = (np.array([value], "<f4").view("<u4") for value in (before, after))
    for change in (int(subtract(new, old)[0]), int(subtract(old, new)[0])):
        assert change & 0x7FFFFF00 == 0x00808000
        assert abs((change & 0xFF) - 0x80) <= 1
        assert (change >> 31 == 0) == (np.signbit(before) != np.signbit(after))


def test_a_difference_can_be_made_in_place() -> None:
    numbers, base, room = np.arange(5, dtype="<u4"), np.full(5, 2, "<u4"), np.empty(5, "<u4")
    assert subtract(numbers, base, room) is room
    assert (add(room, base) == numbers).all()
