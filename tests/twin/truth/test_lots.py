"""Lots: bounded, by name alone, and absent where the truth is to be as stated."""

from hypothesis import given
from hypothesis import strategies as st

from wattline.twin.truth.lots import Lots, draw_lot


@given(st.integers(0, 2**63), st.text(max_size=20))
def test_a_factor_stays_within_its_width(seed: int, subject: str) -> None:
    assert abs(Lots(seed, exact=False).factor(0.05, subject) - 1.0) <= 0.05
    assert Lots(seed, exact=True).factor(0.05, subject) == 1.0


def test_lots_are_spread_over_their_whole_range() -> None:
    lots = [draw_lot(1, f"node-{number}") for number in range(1000)]
    assert min(lots) < -0.95
    assert max(lots) > 0.95
    assert abs(sum(lots) / len(lots)) < 0.1
