"""How long after a checkpoint should the next one be taken?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from bench.cadence import bars, cases, judge
from hypothesis import given
from hypothesis import strategies as st

from wattline.checkpoint.cadence import AutoCadence, choose_interval_seconds, price_in_seconds
from wattline.errors import UnavailableError

HOUR = 3600.0
seconds = st.floats(min_value=0.0, max_value=1e8)
gaps = st.lists(seconds, max_size=60)
costs = st.lists(st.floats(min_value=0.0, max_value=1e5), max_size=12)


def a_cadence(
    *, failed_after: Sequence[float] = (), saves: Sequence[float] = (), open_seconds: float = 0.0
) -> AutoCadence:
    cadence = AutoCadence()
    for gap in failed_after:
        cadence.ran(gap)
        cadence.failed()
    for save in saves:
        cadence.saved(save)
    cadence.ran(open_seconds)
    return cadence


@given(
    save=st.floats(min_value=0.1, max_value=1e4),
    factor=st.floats(min_value=1.01, max_value=100.0),
    mtbf=st.floats(min_value=60.0, max_value=1e8),
    shape=st.floats(min_value=0.5, max_value=2.0),
    age=seconds,
)
def test_the_interval_grows_with_save_cost_and_with_time_between_failures(
    save: float, factor: float, mtbf: float, shape: float, age: float
) -> None:
    chosen = choose_interval_seconds(save, mtbf, shape=shape, age_seconds=age)
    least = chosen * (1 - 1e-6)
    assert choose_interval_seconds(save * factor, mtbf, shape=shape, age_seconds=age) >= least
    assert choose_interval_seconds(save, mtbf * factor, shape=shape, age_seconds=age) >= least


@pytest.mark.parametrize(("save", "mtbf"), [(10.0, 6 * HOUR), (300.0, 6 * HOUR), (3000.0, 6 * HOUR)])
def test_the_interval_solves_dalys_condition_where_failures_have_no_memory(save: float, mtbf: float) -> None:
    chosen = float(choose_interval_seconds(save, mtbf))
    # The least of (exp((w + save) / mtbf) - 1) / w, found by looking on both sides.
    below, at, above = (math.expm1((w + save) / mtbf) / w for w in (0.97 * chosen, chosen, 1.03 * chosen))
    assert at < below
    assert at < above


@given(failed_after=gaps, saves=costs, open_seconds=seconds, behind=st.floats(min_value=0.0, max_value=1e5))
def test_the_interval_is_finite_and_never_below_what_a_save_takes(
    failed_after: list[float], saves: list[float], open_seconds: float, behind: float
) -> None:
    cadence = a_cadence(failed_after=failed_after, saves=saves, open_seconds=open_seconds)
    for _ in range(3):
        cadence.saved(1.0, behind_seconds=behind)
    assert max(1.0, cadence.save_seconds) <= cadence.interval_seconds < 1e9
    assert 0.0 <= cadence.lost_fraction <= 1.0
    if len(saves) <= 2:
        assert cadence.interval_seconds >= behind


@given(failed_after=gaps, open_seconds=seconds)
def test_a_failure_never_makes_failures_look_rarer(failed_after: list[float], open_seconds: float) -> None:
    cadence = a_cadence(failed_after=failed_after, open_seconds=open_seconds)
    before = cadence.mtbf_seconds
    cadence.failed()
    assert cadence.mtbf_seconds <= before * (1 + 1e-9)


def test_more_failures_in_the_same_time_bring_saves_closer() -> None:
    one = a_cadence(failed_after=[24 * HOUR]).interval_seconds
    six = a_cadence(failed_after=[HOUR, 9 * HOUR, 2 * HOUR, 8 * HOUR, HOUR, 3 * HOUR]).interval_seconds
    assert six < 0.7 * one


def test_a_long_time_without_failure_spreads_saves_before_the_next_one_comes() -> None:
    assert a_cadence(open_seconds=1000 * HOUR).interval_seconds > 3 * a_cadence().interval_seconds


def test_saves_begin_dense_where_failures_come_in_bursts() -> None:
    bursts = [60.0, 120.0, 90 * HOUR, 30.0, 240.0, 80 * HOUR, 100.0, 70 * HOUR] * 3
    soon = a_cadence(failed_after=bursts)
    assert soon.shape < 0.8
    assert soon.interval_seconds < a_cadence(failed_after=bursts, open_seconds=10 * HOUR).interval_seconds
    assert "but failures often come 0 s after another" in soon.explain()


def test_one_slow_save_changes_nothing_and_three_do() -> None:
    usual = a_cadence(saves=[10.0] * 5).interval_seconds
    assert a_cadence(saves=[10.0] * 5 + [400.0]).interval_seconds == usual
    assert a_cadence(saves=[10.0] * 5 + [40.0] * 3).interval_seconds == pytest.approx(2 * usual, rel=0.05)


def test_a_save_behind_training_costs_what_it_slows_and_is_not_overtaken() -> None:
    cadence = AutoCadence()
    cadence.saved(2.0, behind_seconds=100.0, slowdown=0.1)
    assert cadence.save_seconds == pytest.approx(12.0)
    cadence = AutoCadence(prior_seconds=HOUR)
    cadence.saved(0.1, behind_seconds=300.0)
    assert cadence.interval_seconds == 300.0
    assert "takes 5 min to be written" in cadence.explain()


def test_a_price_counts_as_the_training_it_would_have_paid_for() -> None:
    price = price_in_seconds(0.04, gpu_second_usd=0.001, gpus=8)
    assert price == pytest.approx(5.0)
    priced = AutoCadence(price_seconds=price)
    priced.saved(5.0)
    assert priced.interval_seconds == pytest.approx(a_cadence(saves=[10.0]).interval_seconds)
    assert "a price worth 5 s" in priced.explain()


def test_restarts_are_told_and_move_nothing() -> None:
    cadence = a_cadence(saves=[10.0])
    interval, lost = cadence.interval_seconds, cadence.lost_fraction
    cadence.restarted(600.0)
    assert cadence.interval_seconds == interval
    assert cadence.lost_fraction == pytest.approx(lost + 600.0 / (24 * HOUR), rel=0.02)


def test_the_sentence_has_all_the_numbers() -> None:
    cadence = a_cadence(failed_after=[2 * HOUR, 6 * HOUR], saves=[4.2], open_seconds=HOUR)
    cadence.restarted(60.0)
    assert cadence.explain() == (
        "every 9.26 min: a save costs 4.2 s, a restart 1 min, a failure comes every 9.89 h "
        "(2 seen in 9 h, prior 1 d), so 1.69 % is lost"
    )


@given(failed_after=gaps, saves=costs, restarts=costs, open_seconds=seconds)
def test_the_text_carries_everything(
    failed_after: list[float], saves: list[float], restarts: list[float], open_seconds: float
) -> None:
    cadence = a_cadence(failed_after=failed_after, open_seconds=open_seconds)
    for save in saves:
        cadence.saved(save, behind_seconds=2 * save, slowdown=0.05)
    for restart in restarts:
        cadence.restarted(restart)
    text = cadence.to_text()
    read = AutoCadence.from_text(text)
    assert len(text) <= 1000
    assert read.to_text() == text
    assert read.interval_seconds == pytest.approx(cadence.interval_seconds, rel=1e-4)
    assert read.lost_fraction == pytest.approx(cadence.lost_fraction, rel=1e-3, abs=1e-4)


def test_no_text_makes_it_fall_over_later() -> None:
    worst = "auto:prior=1e10,price=1e10,ran=1e10,gaps=0/0/1e10,saves=1e10,behind=1e10,restarts=1e10"
    for text in (worst, "auto:prior=60,gaps=0/0/0,saves=0", "auto:prior=60,ran=1e10,saves=1e10"):
        cadence = AutoCadence.from_text(text)
        assert 1.0 <= cadence.interval_seconds <= 2e10
        assert 0.0 <= cadence.lost_fraction <= 1.0
        assert cadence.explain()


def test_auto_alone_is_a_cadence_that_knows_nothing() -> None:
    assert AutoCadence.from_text("auto").to_text() == AutoCadence().to_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begins with ''"),
        ("seconds:30", "begins with 'seconds'"),
        ("auto:prior", "has '' for a number in prior"),
        ("auto:gaps=1//2", "has '' for a number in gaps"),
        ("auto:gaps=nan", "has 'nan' for a number in gaps"),
        ("auto:ran=-5", "has '-5' for a number in ran"),
        ("auto:ran=1e99", "ran is 1e+99"),
        ("auto:prior=0", "prior is 0"),
        ("auto:ran=1,ran=2", "has ran twice"),
        ("auto:faults=2", "a field 'faults'; known are prior"),
        ("auto:gaps=" + "/".join(["1"] * 33), "has 33 numbers in gaps"),
        ("auto:gaps=" + "1" * 2000, "more than 1000"),
    ],
)
def test_any_other_text_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(UnavailableError, match="checkpoint cadence") as refused:
        AutoCadence.from_text(text)
    assert said in refused.value.message


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_times_that_cannot_be_are_refused(wrong: float) -> None:
    for tell in (AutoCadence().ran, AutoCadence().saved, AutoCadence().restarted):
        with pytest.raises(UnavailableError):
            tell(wrong)


def test_it_is_as_good_as_promised_against_the_best_fixed_interval() -> None:
    rows = [judge(case) for case in cases(failures=10_000, histories=40, whole=2, saves=(300.0,))]
    missed = {name: max(found) for name, most, found in bars(rows) if max(found) > most}
    assert not missed
    # The bars for a change mean something only where staying as before would miss them.
    stayed = ("rate:4:old", "rate:0.25:old", "save:4:old", "save:0.25:old")
    assert min(share for row in rows for share in row.of(*stayed)) > 0.10
