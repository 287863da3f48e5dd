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
def test_a_neighbour_is_a_small_difference_but_for_the_bit_of_the_sign(before: float, after: float) -> None:
    old, new = (np.array([value], "<f4").view("<u4") for value in (before, after))
    assert subtract(new, old)[0] & 0x7FFFFFFF <= 2
    assert subtract(old, new)[0] & 0x7FFFFFFF <= 2
    assert (subtract(new, old)[0] >> 31) == (np.signbit(before) != np.signbit(after))
