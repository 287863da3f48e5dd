from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twin.recording import a_report
from wattline.errors import UsageError
from wattline.observing.weighing import GAINS
from wattline.twin.comparison import METRICS, Comparison, Standing, compare, t_quantile
from wattline.twin.report import Report


def runs(policy: str, energies: Sequence[float]) -> list[Report]:
    return [a_report(policy=policy, seed=seed, energy_kwh=kwh) for seed, kwh in enumerate(energies)]


def energy_of(comparison: Comparison, policy: str) -> Standing:
    contest = next(each for each in comparison.metrics if each.metric == "energy_kwh")
    return next(each for each in contest.standings if each.policy == policy)


def test_every_metric_is_told_for_every_policy_in_the_order_given() -> None:
    compared = compare([*runs("fifo", [1, 2]), *runs("easy", [1, 2])])
    assert compared.policies == ("fifo", "easy")
    assert [each.metric for each in compared.metrics] == list(METRICS)
    assert set(GAINS) <= set(METRICS)  # what `observe` tells of a comparison
    assert all([one.policy for one in each.standings] == ["fifo", "easy"] for each in compared.metrics)


def test_the_interval_is_students_t_over_paired_differences() -> None:
    # Differences are 1, 2 and 3: mean 2, deviation 1, standard error 1/√3, t(2) = 4.303.
    compared = compare([*runs("fifo", [100, 500, 900]), *runs("easy", [101, 502, 903])])
    standing = energy_of(compared, "easy")
    assert standing.difference == pytest.approx(2.0)
    assert standing.high == pytest.approx(2.0 + 4.303 / 3**0.5)
    assert standing.low == pytest.approx(2.0 - 4.303 / 3**0.5)
    assert standing.is_clear is False


def test_what_all_seeds_share_cancels() -> None:
    """Between seeds these differ by hundreds; unpaired, a difference of two could never be clear."""
    compared = compare([*runs("fifo", [100, 500, 900]), *runs("easy", [102.1, 502, 901.9])])
    assert energy_of(compared, "easy").is_clear is True


def test_the_first_policy_is_measured_against_nobody() -> None:
    standing = energy_of(compare([*runs("fifo", [1, 2]), *runs("easy", [3, 4])]), "fifo")
    assert (standing.mean, standing.difference, standing.is_clear) == (1.5, None, None)


def test_equal_policies_do_not_differ_clearly() -> None:
    standing = energy_of(compare([*runs("fifo", [1, 2, 3]), *runs("copy", [1, 2, 3])]), "copy")
    assert (standing.difference, standing.low, standing.high, standing.is_clear) == (0, 0, 0, False)


def test_sums_that_differ_in_their_last_digits_do_not_differ() -> None:
    standing = energy_of(compare([*runs("fifo", [0.3, 6e3]), *runs("copy", [0.1 + 0.2, 6e3 + 1e-8])]), "copy")
    assert (standing.difference, standing.low, standing.high, standing.is_clear) == (0, 0, 0, False)


def test_one_seed_gives_a_difference_and_no_interval() -> None:
    compared = compare([*runs("fifo", [5]), *runs("easy", [4])])
    standing = energy_of(compared, "easy")
    assert (standing.difference, standing.low, standing.high, standing.is_clear) == (-1, None, None, None)
    assert compared.not_estimated == ("interval",)


def test_a_metric_that_one_run_does_not_know_is_null_and_named() -> None:
    known, unknown = runs("fifo", [1, 2]), runs("easy", [1, 2])
    unknown[1] = a_report(policy="easy", seed=1, cost_usd=None)
    compared = compare([*known, *unknown])
    contest = next(each for each in compared.metrics if each.metric == "cost_usd")
    assert contest.standings[0].mean is not None
    assert (contest.standings[1].mean, contest.standings[1].difference) == (None, None)
    assert compared.not_estimated == ("cost_usd",)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (a_report(policy="easy", seed=0, trace="helios.csv"), "differ in trace"),
        (a_report(policy="easy", seed=0, arrival_scale=2.0), "differ in arrival scale"),
        (a_report(policy="easy", seed=9), "seeds of the first policy"),
        (a_report(policy="fifo", seed=0), "twice with seed 0"),
    ],
)
def test_runs_of_different_things_are_not_compared(other: Report, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        compare([*runs("fifo", [1]), other])


def test_nothing_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="nothing to compare"):
        compare([])


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (4, 2.776), (24, 2.086), (30, 2.042), (10**6, 1.98)]
)
def test_quantiles_between_rows_are_the_wider_ones(freedom: int, quantile: float) -> None:
    assert t_quantile(freedom) == quantile


@given(st.integers(1, 500))
def test_more_seeds_never_widen_the_interval(freedom: int) -> None:
    assert t_quantile(freedom + 1) <= t_quantile(freedom)
