"""What an hour of work now is worth against hours later."""

from __future__ import annotations

import math

import pytest

from wattline.policy.shifting.hours_ahead import RankedHours


@pytest.mark.parametrize(
    ("work_hours", "until_hour", "price"),
    [(1.0, 6.0, 10.0), (2.0, 6.0, 20.0), (2.5, 6.0, 30.0), (3.0, 3.0, math.inf), (2.0, 3.0, 40.0)],
)
def test_later_costs_what_the_dearest_hour_that_is_needed_costs(
    work_hours: float, until_hour: float, price: float
) -> None:
    ranked = RankedHours.of([50.0, 40.0, 30.0, 20.0, 10.0, 60.0])
    assert ranked.price_of_later(work_hours, until_hour) == price


def test_an_hour_that_nobody_knows_is_not_counted_on() -> None:
    assert RankedHours.of([50.0, None, 30.0]).price_of_later(2.0, 3.0) == math.inf
    assert RankedHours.of([50.0, None, 30.0]).price_of_later(1.0, 3.0) == 30.0


def test_the_second_half_of_a_wide_job_costs_more_for_the_same_work() -> None:
    ranked = RankedHours.of([100.0, 10.0, 90.0], (1.0, 0.8))
    assert ranked.price_of_later(1.8, 3.0) == pytest.approx(12.5)
    assert ranked.price_of_later(1.9, 3.0) == pytest.approx(90.0)


def test_using_more_of_what_has_a_negative_price_is_no_gain() -> None:
    ranked = RankedHours.of([0.0, -10.0], (1.0, 0.5))
    assert [unit[0] for unit in ranked.units[:2]] == [-10.0, -10.0]
    assert ranked.units[0][2] == 1.0


def test_the_next_hour_that_is_better_is_named() -> None:
    ranked = RankedHours.of([50.0, 60.0, 40.0, 10.0])
    assert ranked.next_hour_below(50.0, 4.0) == 2
    assert ranked.next_hour_below(50.0, 2.0) is None
