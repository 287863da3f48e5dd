"""Utilisation: what was fitted on one cluster gives the watts of the other from its own utilisation."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import shared_data
from wattline.physics.utilisation import A100_DRAW, DrawCurve, fit_draw_curve, predict_share_below

duties = st.one_of(st.just(0.0), st.floats(0.01, 1.0))
watts = st.floats(0.0, 700.0)


@cache
def read_series(name: str) -> list[float]:
    """A thousand equally likely values, in order."""
    with gzip.open(shared_data("telemetry/acme_cdfs_aug2023.csv.gz"), "rt", encoding="utf-8") as lines:
        return sorted(float(row["value"]) for row in csv.DictReader(lines) if row["series"] == name)


def duties_of(cluster: str, percent: int = 1) -> dict[float, float]:
    """The share of GPUs at each duty, in steps of so many percent; only 0 counts as 0."""
    values = read_series(f"{cluster}_gpu_util_metric0")
    steps = Counter(max(1, round(value / percent)) if value else 0 for value in values)
    return {step * percent / 100: count / len(values) for step, count in steps.items()}


def distance(curve: DrawCurve, cluster: str) -> float:
    """Kolmogorov and Smirnov's: the most by which predicted and measured shares differ, at any watts."""
    measured = read_series(f"{cluster}_gpu_power")
    shares = duties_of(cluster)
    most = 0.0
    for rank, value in enumerate(measured):
        predicted = predict_share_below(curve, shares, value)
        most = max(most, abs(predicted - rank / len(measured)), abs(predicted - (rank + 1) / len(measured)))
    return most


def share_below(cluster: str, limit_watts: float) -> float:
    values = read_series(f"{cluster}_gpu_power")
    return sum(value <= limit_watts for value in values) / len(values)


def test_watts_of_the_cluster_that_was_held_out_follow_from_its_utilisation() -> None:
    assert distance(A100_DRAW, "seren") <= 0.03
    assert distance(A100_DRAW, "kalos") <= 0.1


@pytest.mark.parametrize("cluster", ["seren", "kalos"])
def test_the_idle_mass_and_the_tail_above_the_rating_are_there(cluster: str) -> None:
    shares = duties_of(cluster)
    assert predict_share_below(A100_DRAW, shares, 65.0) == pytest.approx(share_below(cluster, 65.0), abs=0.05)
    measured_p99 = read_series(f"{cluster}_gpu_power")[989]
    assert predict_share_below(A100_DRAW, shares, measured_p99) == pytest.approx(0.99, abs=0.003)
    assert 1.0 - predict_share_below(A100_DRAW, shares, 1.05 * A100_DRAW.limit_watts) > 0.01


def test_the_curve_in_the_code_is_the_fit_on_seren() -> None:
    fitted = fit_draw_curve(duties_of("seren", percent=5), read_series("seren_gpu_power"), 400.0)
    for name in DrawCurve.__slots__:
        assert getattr(fitted, name) == pytest.approx(getattr(A100_DRAW, name), rel=0.02), name


def test_fitted_the_other_way_round_it_holds_as_well() -> None:
    fitted = fit_draw_curve(duties_of("kalos", percent=10), read_series("kalos_gpu_power"), 400.0)
    assert distance(fitted, "seren") <= 0.1


@given(duties, watts, watts)
def test_shares_only_grow_with_watts(duty: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    shares = A100_DRAW.share_below(low, duty), A100_DRAW.share_below(high, duty)
    assert 0.0 <= shares[0] <= shares[1] + 1e-12 <= 1.0 + 1e-9


@given(st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.floats(66.0, 399.0))
def test_more_duty_never_lowers_what_gpus_draw(one: float, other: float, limit_watts: float) -> None:
    rare, often = sorted((one, other))
    above = [1.0 - A100_DRAW.share_below(limit_watts, duty) for duty in (rare, often)]
    assert above[0] <= above[1] + 1e-9
