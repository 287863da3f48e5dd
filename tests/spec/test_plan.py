from __future__ import annotations

from collections.abc import Callable

import pytest

from wattline.errors import DocumentError, Problem
from wattline.spec import Plan, PlanCost, parse_document, read_plan, shipped_plans

OPTION = "{name: more, changes: [{link: a-b, bandwidth_factor: 2}]}"


def test_a_plan_names_options_what_they_change_and_what_they_cost() -> None:
    text = b"""
    plan: next-year
    facility: hall.yaml
    horizon: 7d
    workload: {trace: jobs.csv.gz, arrival_scale: 2}
    options:
      - name: racks
        changes: [{rack: lulea/h01, copies: 20, on_loop: lulea/cdu-2, grow: [loop, power]}]
        cost: {capital: 1_000_000, lifetime_years: 5, per_year: 10_000}
      - name: warmer
        changes: [{loop: cdu-1, warmer_by: +2K}, {loop: cdu-2, warmer_by: -1K}]
    """
    plan = parse_document(text, Plan, file="plan.yaml")
    racks, warmer = plan.options
    assert (racks.changes[0].copies, racks.changes[0].grow) == (20, ("loop", "power"))
    assert racks.cost is not None
    assert racks.cost.usd_per_year == pytest.approx(210_000)
    assert [change.warmer_by for change in warmer.changes] == [2.0, -1.0]
    assert (warmer.cost, plan.horizon, plan.seeds) == (None, 7 * 86400.0, 5)


def test_a_cost_of_nothing_is_a_cost() -> None:
    assert PlanCost(per_year=0).usd_per_year == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("loop: x, link: y, warmer_by: 2K", "exactly one of rack, loop, supply, link"),
        ("warmer_by: 2K", "exactly one of rack, loop, supply, link"),
        ("loop: x", "says capacity_factor or warmer_by"),
        ("loop: x, rating_factor: 2", "says capacity_factor or warmer_by"),
        ("rack: x, copies: 2, cap_factor: 2", "and nothing else"),
        ("loop: x, capacity_factor: 2, grow: [loop]", "belong to copies of a rack"),
        ("rack: x, copies: 0", "too small"),
        ("loop: x, warmer_by: 60K", "between -50 and 50 K"),
        ("loop: x, warmer_by: 2C", "unknown unit"),
        ("link: x, bandwidth_factor: 0", "too small"),
        ("link: x, bandwidth_factor: .nan", "finite number"),
        ("rack: x, copies: 2, grow: [roof]", "not one of the values"),
    ],
)
def test_a_change_that_says_nothing_or_too_much_is_refused(
    faults_in: Callable[..., tuple[Problem, ...]], change: str, message: str
) -> None:
    (problem,) = faults_in(f"plan: p\noptions: [{{name: o, changes: [{{{change}}}]}}]\n", Plan)
    assert problem.field.startswith("options[0].changes[0]")
    assert message in problem.message


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        (f"plan: p\noptions: [{OPTION}, {OPTION}]", "options[0].name", "two options have this name"),
        ("plan: p\noptions: []", "options", "too few entries"),
        (f"plan: p\nseeds: 0\noptions: [{OPTION}]", "seeds", "too small"),
        (f"plan: p\nbegins: July\noptions: [{OPTION}]", "begins", "written as 2024-07-01"),
        (f"plan: p\nweather: {{a: {{january: 5C}}}}\noptions: [{OPTION}]", "weather.a.july", "required"),
        (
            f"plan: p\nweather: {{a: {{january: 5C, july: 61C}}}}\noptions: [{OPTION}]",
            "weather.a.july",
            "too large",
        ),
        (
            f"plan: p\nworkload: {{filled: 50%, gpus: [1], runs: [1h, 2h]}}\noptions: [{OPTION}]",
            "workload",
            "as long as horizon says",
        ),
        (
            "plan: p\noptions: [{name: o, changes: [{link: l, bandwidth_factor: 2}], cost: {capital: 5}}]",
            "options[0].cost",
            "lifetime_years",
        ),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(
    faults_in: Callable[..., tuple[Problem, ...]], text: str, field: str, message: str
) -> None:
    first, *_ = faults_in(f"{text}\n", Plan)
    assert first.field == field
    assert message in first.message


@pytest.mark.parametrize("name", shipped_plans())
def test_a_plan_that_ships_is_read_by_its_name(name: str) -> None:
    assert read_plan(name).document.plan == name


def test_an_unknown_field_is_told_with_the_nearest_known() -> None:
    with pytest.raises(DocumentError, match="did you mean 'copies'"):
        parse_document(b"plan: p\noptions: [{name: o, changes: [{rack: r, copes: 2}]}]", Plan, file="p.yaml")
