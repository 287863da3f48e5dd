from __future__ import annotations

import math

import pytest

from wattline.control.objectives_tally import Tally
from wattline.spec.slo import Slo

HOUR = 3600.0
NOW = 100 * 24 * HOUR


def a_tally(objective: str = "95%", window: str = "28d") -> Tally:
    written = {"name": "s", "indicator": "completion", "objective": objective, "window": window}
    return Tally(Slo.model_validate(written), "jobs")


def fill(tally: Tally, *, hours_ago: float, good: int = 0, bad: int = 0, reason: str = "gpus") -> None:
    for _ in range(good):
        tally.add(NOW - hours_ago * HOUR, good=1.0)
    for _ in range(bad):
        tally.add(NOW - hours_ago * HOUR, bad=1.0, reason=reason)


def test_the_budget_is_what_might_have_been_bad_of_all_that_happened() -> None:
    tally = a_tally("95%")
    fill(tally, hours_ago=50, good=96, bad=4)
    standing = tally.standing(NOW)
    assert standing.share == pytest.approx(0.96)
    assert standing.is_met is True
    assert standing.allowed == pytest.approx(5.0)
    assert standing.left == pytest.approx(1.0)


@pytest.mark.parametrize(("bad", "is_met"), [(5, True), (6, False)])
def test_an_objective_is_missed_by_the_first_too_many(bad: int, is_met: bool) -> None:
    tally = a_tally("95%")
    fill(tally, hours_ago=50, good=100 - bad, bad=bad)
    assert tally.standing(NOW).is_met is is_met


@pytest.mark.parametrize(("window", "bad"), [("7d", 0.0), ("28d", 3.0)])
def test_what_lies_before_the_window_does_not_count(window: str, bad: float) -> None:
    tally = a_tally(window=window)
    fill(tally, hours_ago=8 * 24, bad=3)
    fill(tally, hours_ago=1, good=1)
    assert tally.standing(NOW).bad == bad


def test_what_is_older_than_every_window_is_forgotten() -> None:
    tally = a_tally()
    for day in range(40, -1, -1):
        fill(tally, hours_ago=24.0 * day, bad=1)
    assert len(tally.cells) <= 30
    assert tally.standing(NOW).bad == 29


def test_a_rate_of_one_spends_the_budget_exactly() -> None:
    tally = a_tally("90%")
    fill(tally, hours_ago=2, good=9, bad=1)
    rates = [burn.rate for burn in tally.standing(NOW).burns]
    assert rates == [None, pytest.approx(1.0), pytest.approx(1.0)], "nothing happened in the last hour"


@pytest.mark.parametrize(
    ("objective", "hours_ago", "good", "bad", "alert"),
    [
        ("99%", 0.05, 85, 15, "page"),  # 15 times too fast, still
        ("99%", 0.05, 99, 1, ""),  # one alone is no rate
        ("99%", 0.9, 85, 15, "ticket"),  # … and over: nothing was bad in the last minutes
        ("99%", 0.4, 93, 7, "page"),  # 7 times over six hours and the last half hour
        ("99%", 5.0, 96, 4, "ticket"),
        ("99%", 60.0, 96, 4, ""),
        ("80%", 0.05, 0, 10, "page"),  # five times is all that a budget of a fifth can burn
        ("100%", 0.05, 1000, 2, "page"),
        ("95%", 0.05, 0, 0, ""),
    ],
)
def test_an_alert_needs_a_long_and_a_short_window(
    objective: str, hours_ago: float, good: int, bad: int, alert: str
) -> None:
    tally = a_tally(objective)
    fill(tally, hours_ago=hours_ago, good=good, bad=bad)
    assert tally.standing(NOW).alert == alert


def test_where_nothing_may_be_bad_one_bad_event_burns_without_end() -> None:
    tally = a_tally("100%")
    fill(tally, hours_ago=0.5, good=10, bad=1)
    standing = tally.standing(NOW)
    assert standing.allowed == 0.0
    assert standing.burns[0].rate == math.inf


def test_what_ate_the_budget_is_named_the_most_first() -> None:
    tally = a_tally()
    fill(tally, hours_ago=1, bad=1, reason="heat.throttle")
    fill(tally, hours_ago=2, bad=3, reason="power.supply")
    assert tally.standing(NOW).reasons == (("power.supply", 3.0), ("heat.throttle", 1.0))
