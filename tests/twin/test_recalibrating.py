"""Forecasts are corrected by how wrong they were, and by nothing else."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.twin.recalibrating import P90_OVER_P50, Recalibration, Wait

KIND = ("lines",)
RAW = Wait(100.0, 100.0 * P90_OVER_P50)


def waited(recalibration: Recalibration, job: str, at: float, seconds: float) -> None:
    recalibration.tell(job, KIND, at, RAW)
    recalibration.begin(job, at + seconds)


def test_a_forecast_is_taken_as_right_before_anything_was_seen() -> None:
    corrected = Recalibration().correct(KIND, RAW)
    assert (corrected.p50_seconds, corrected.p90_seconds) == (RAW.p50_seconds, RAW.p90_seconds)
    assert corrected.pledge_seconds > RAW.p90_seconds


def test_waits_that_last_three_times_as_long_stretch_what_is_told_next() -> None:
    recalibration = Recalibration()
    for number in range(60):
        waited(recalibration, f"r{number}", 1000.0 * number, 300.0)
    told = recalibration.correct(KIND, RAW)
    assert 1.3 * RAW.p50_seconds < told.p50_seconds < 300.0
    assert told.p90_seconds > RAW.p90_seconds


def test_other_kinds_and_waits_of_other_lengths_are_left_as_they_are() -> None:
    recalibration, days = Recalibration(), Wait(1e5, 2e5)
    for number in range(60):
        waited(recalibration, f"r{number}", 1000.0 * number, 300.0)
    assert recalibration.correct(("twin",), RAW) == Recalibration().correct(("twin",), RAW)
    assert recalibration.correct(KIND, days) == Recalibration().correct(KIND, days)


@pytest.mark.parametrize(("shift", "spread"), [(0.5, 0.55), (-0.5, 0.55), (0.0, 1.0), (0.0, 0.2)])
def test_what_is_told_comes_nearer_to_half_and_nine_in_ten(shift: float, spread: float) -> None:
    """Assumed errors keep their voice, so not all of the way; where it was right it may wander a little."""
    chance, recalibration = random.Random(3), Recalibration()
    raw, corrected, jobs = Counter[str](), Counter[str](), 2000
    for number in range(jobs):
        seconds = 100.0 * chance.lognormvariate(shift, spread)
        for counted, told in ((raw, RAW), (corrected, recalibration.correct(KIND, RAW))):
            counted["p50"] += seconds <= told.p50_seconds
            counted["p90"] += seconds <= told.p90_seconds
        waited(recalibration, f"r{number}", 1e4 * number, seconds)
    for quantile, share in (("p50", 0.5), ("p90", 0.9)):
        off, was_off = (abs(counted[quantile] / jobs - share) for counted in (corrected, raw))
        assert off < max(0.1, 0.85 * was_off)


def test_a_whole_queue_that_errs_together_weighs_about_as_much_as_one_wait() -> None:
    alone, together = Recalibration(), Recalibration()
    waited(alone, "r0", 0.0, 1000.0)
    for number in range(500):
        together.tell(f"r{number}", KIND, 0.0, RAW)
    for number in range(250):
        together.begin(f"r{number}", 1000.0)
    one, many = (each.correct(KIND, RAW).p90_seconds for each in (alone, together))
    assert RAW.p90_seconds * 1.02 < many < one


def test_only_the_first_forecast_of_a_wait_counts_and_who_leaves_teaches_nothing() -> None:
    first, again = Recalibration(), Recalibration()
    waited(first, "r0", 0.0, 500.0)
    again.tell("r0", KIND, 0.0, RAW)
    again.tell("r0", KIND, 400.0, RAW)
    again.tell("r1", ("twin",), 400.0, RAW)
    again.drop("r1")
    again.begin("r0", 500.0)
    again.begin("r1", 900.0)
    for kind in (KIND, ("twin",)):
        assert again.correct(kind, RAW) == first.correct(kind, RAW)


@given(st.lists(st.floats(0.0, 1e9), max_size=30), st.floats(0.0, 1e9), st.floats(1.0, 50.0))
def test_p90_is_never_before_p50(waits: list[float], p50: float, wider: float) -> None:
    recalibration = Recalibration()
    for number, seconds in enumerate(waits):
        waited(recalibration, f"r{number}", 0.0, seconds)
    told = recalibration.correct(KIND, Wait(p50, p50 * wider))
    assert 0.0 <= told.p50_seconds <= told.p90_seconds < float("inf")
