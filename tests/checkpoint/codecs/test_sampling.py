"""A sample tells what the planes of numbers are like."""

from __future__ import annotations

import numpy as np
import pytest

from wattline.checkpoint.codecs.sampling import SAMPLED, look_at, sample


def test_a_sample_reaches_from_the_first_number_to_the_last() -> None:
    some = sample(np.arange(100_000, dtype="<u4"))
    assert len(some) == SAMPLED
    assert (some[0], some[-1]) == (0, 99_999)
    assert (sample(some) == some).all()


def test_each_plane_is_counted_by_itself() -> None:
    numbers = np.array([0x0102, 0x0103, 0x0104, 0x0105] * 256, "<u2")
    low, high = look_at(numbers)
    assert low.some.tolist() == [2, 3, 4, 5] * 256
    assert low.counts[2:6].tolist() == [256] * 4
    assert high.counts[1] == SAMPLED
    assert (low.entropy, high.entropy) == pytest.approx((2 / 8, 0))
