"""Fitting: the search finds what a model was made with."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.physics.fitting import minimise


@given(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0))
def test_it_finds_the_bottom_of_a_bowl(one: float, other: float) -> None:
    found = minimise(lambda p: (p[0] - one) ** 2 + 10.0 * (p[1] - other) ** 2, (0.0, 0.0), (1.0, 1.0))
    assert found == pytest.approx((one, other), abs=1e-3)


def test_it_follows_a_narrow_bent_valley() -> None:
    found = minimise(lambda p: (1.0 - p[0]) ** 2 + 100.0 * (p[1] - p[0] ** 2) ** 2, (-1.2, 1.0), (0.5, 0.5))
    assert found == pytest.approx((1.0, 1.0), abs=1e-2)


def test_it_never_ends_where_a_model_cannot_be() -> None:
    def loss(place: tuple[float, ...]) -> float:
        return math.inf if place[0] < 2.0 else place[0] ** 2

    assert minimise(loss, (5.0,), (1.0,))[0] == pytest.approx(2.0, abs=1e-3)
    assert minimise(loss, (5.0,), (1.0,))[0] >= 2.0
