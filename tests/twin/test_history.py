"""How long jobs take, by how long jobs like them took lately."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.twin.experience import P90, group_of
from wattline.twin.history import History

GROUP = group_of("nlp", 1)
durations = st.floats(1.0, 1e7)


@given(st.lists(durations, min_size=1, max_size=50))
def test_quantiles_are_in_order_and_near_what_was_seen(taken: list[float]) -> None:
    history = History()
    for seconds in taken:
        history.add(GROUP, seconds)
    shares = (0.1, 0.5, 0.9, 0.99)
    found = [history.quantile_seconds(GROUP, share) for share in shares]
    known = [each for each in found if each is not None]
    assert len(known) == len(shares)
    assert known == sorted(known)
    assert min(taken) / 1.16 <= known[0]
    assert known[-1] <= max(taken) * 1.16


def test_nothing_is_known_before_something_ended() -> None:
    assert History().quantile_seconds(GROUP, P90) is None


def test_a_group_that_saw_nothing_is_like_the_rest_of_its_cluster() -> None:
    history = History()
    for _ in range(50):
        history.add(group_of("nlp", 8), 1000.0)
        history.add(group_of("vision", 1), 10.0)
    assert history.quantile_seconds(group_of("nlp", 4), 0.5) == pytest.approx(1000.0, rel=0.16)


def test_the_recent_past_counts_more_than_the_distant() -> None:
    history = History()
    for seconds in [10.0] * 1000 + [5000.0] * 400:
        history.add(GROUP, seconds)
    assert history.quantile_seconds(GROUP, 0.5) == pytest.approx(5000.0, rel=0.16)
