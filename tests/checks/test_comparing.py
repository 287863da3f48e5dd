from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.rendering.sample import BASE, HEAD
from wattline.checks.comparing import NOTHING, compare, is_worth_a_comment
from wattline.checks.report import Answer, Difference, Estimate
from wattline.spec.policy import Quota


def changed(delta: float | None, *, figure: str = "gpu_hours") -> dict[str, Difference]:
    return {figure: Difference(base=1.0, head=None, delta=delta, fraction=None)}


def test_every_figure_is_held_against_its_base() -> None:
    diff = compare(BASE, HEAD)
    assert diff["gpu_hours"].delta == 9.0
    assert diff["gpu_hours"].fraction == pytest.approx(0.2195, abs=1e-4)
    assert diff["cost_usd"].delta == 38.0
    assert diff["queue_minutes"].delta == 5.0


def test_what_one_of_them_does_not_know_has_no_difference() -> None:
    diff = compare(Estimate(gpu_hours=3.0), Estimate(carbon_kg=1.0))
    assert diff["gpu_hours"] == Difference(base=3.0, head=None, delta=None, fraction=None)
    assert diff["carbon_kg"] == Difference(base=None, head=1.0, delta=None, fraction=None)
    assert set(diff) == {"gpu_hours", "carbon_kg"}


def test_a_pipeline_that_is_added_or_removed_is_held_against_nothing() -> None:
    assert compare(NOTHING, HEAD)["cost_usd"] == Difference(base=0.0, head=206.5, delta=206.5, fraction=None)
    assert compare(HEAD, NOTHING)["cost_usd"].fraction == -1.0


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_base_and_difference_give_the_head(base: float, head: float) -> None:
    difference = compare(Estimate(gpu_hours=base), Estimate(gpu_hours=head))["gpu_hours"]
    assert difference.delta is not None
    assert math.isclose(base + difference.delta, head, abs_tol=1e-6, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("delta", "worth"), [(5.0, False), (5.1, True), (-5.0, False), (-5.1, True), (None, True)]
)
def test_a_comment_is_worth_it_beyond_the_bound_and_where_it_is_not_known(
    delta: float | None, worth: bool
) -> None:
    assert is_worth_a_comment(changed(delta), Quota(gpu_hours=5.0), "pass") is worth


@pytest.mark.parametrize("verdict", ["warn", "block"])
def test_what_is_not_pass_is_always_told(verdict: Answer) -> None:
    assert is_worth_a_comment(changed(0.0), Quota(gpu_hours=5.0), verdict)


def test_without_a_bound_or_a_base_everything_is_told() -> None:
    assert is_worth_a_comment(changed(0.0), Quota(), "pass")
    assert is_worth_a_comment({}, Quota(gpu_hours=5.0), "pass")


def test_only_figures_with_a_bound_count() -> None:
    assert not is_worth_a_comment(changed(99.0, figure="cost_usd"), Quota(gpu_hours=5.0), "pass")
    assert is_worth_a_comment(changed(99.0, figure="cost_usd"), Quota(usd=50), "pass")
    assert is_worth_a_comment(changed(9.0, figure="carbon_kg"), Quota(kg_co2e=8), "pass")
    assert is_worth_a_comment(changed(9.0, figure="energy_kwh"), Quota(kwh=8), "pass")
