from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from wattline.errors import Problem, UnavailableError
from wattline.spec import Scenario, find_scenario, parse_document, read_scenario, shipped_scenarios

NAMES = (
    "burst",
    "feed-loss",
    "grid-event",
    "heatwave",
    "pump-trip",
    "site-loss",
    "spot-reclaim",
    "wan-brownout",
)
MADE = "workload: {filled: 70%, gpus: [8], runs: [1h, 2h]}"


def a_scenario(rest: str = "", workload: str = MADE) -> str:
    return f"scenario: trial\nsay: what if\nfacility: lab\nlasts: 2h\n{workload}\n{rest}"


def test_the_shipped_scenarios_are_these() -> None:
    assert tuple(shipped_scenarios()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_scenario_is_called_as_its_file_and_explains_itself(name: str) -> None:
    written = read_scenario(name)
    assert written.document.scenario == name
    text = written.path.read_text()
    assert len(text.splitlines()) < 40
    assert text.startswith("# ")
    assert text.count("#") >= 4
    assert written.document.faults or written.document.conditions or written.document.workload.burst


def test_a_scenario_says_who_comes_and_what_happens() -> None:
    text = a_scenario(
        """
faults: [{name: pump, at: {after: 10min}, lasts: 1min, loop: cdu, flow: 0%}]
conditions: [{name: hot, at: {after: 1h}, lasts: 1h, site: zurich, outside: 8K, limit: 50%, price_factor: 3}]
"""
    )
    scenario = parse_document(text.encode(), Scenario, file="s.yaml")
    assert (scenario.workload.filled, scenario.workload.runs) == (0.7, (3600.0, 7200.0))
    assert (scenario.faults[0].subject, scenario.faults[0].lasts) == ("cdu", 60.0)
    (hot,) = scenario.conditions
    assert (hot.site, hot.outside, hot.limit, hot.price_factor, hot.lost) == ("zurich", 8.0, 0.5, 3.0, False)


@pytest.mark.parametrize(
    ("rest", "line", "field", "message"),
    [
        ("faults: [{name: f, at: {phase: a, step: 1}, loop: x, flow: 0%}]", 6, "faults[0].at", "runs steps"),
        ("faults: [{name: f, at: {after: 2h}, loop: x, flow: 0%}]", 6, "faults[0].at", "has ended by then"),
        ("conditions: [{name: c, at: {after: 1h}}]", 6, "conditions[0]", "says outside, price_factor"),
        ("conditions: [{name: c, at: {after: 1min}, outside: 2K}]", 6, "conditions[0]", "whole hours"),
        (
            "conditions: [{name: c, at: {after: 1h}, lasts: 90min, price_factor: 2}]",
            6,
            "conditions[0]",
            "whole hours",
        ),
        ("conditions: [{name: c, at: {after: 1h}, lost: true}]", 6, "conditions[0]", "which site is lost"),
        ("conditions: [{name: c, at: {after: 1h}, site: x, limit: 2}]", 6, "conditions[0].limit", "0 and 1"),
        ("conditions: [{name: c, at: {after: 1h}, carbon_factor: -1}]", 6, "conditions[0].carbon_factor", ""),
        ("happenings: []", 6, "happenings", "unknown field"),
    ],
)
def test_what_cannot_happen_is_refused_with_its_place(
    faults_in: Callable[..., tuple[Problem, ...]], rest: str, line: int, field: str, message: str
) -> None:
    (problem,) = faults_in(a_scenario(rest), Scenario)
    assert (problem.line, problem.field) == (line, field)
    assert message in problem.message


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ("{}", "say filled, arrivals_per_hour or bursts, or name a trace"),
        ("{filled: 50%, runs: [1h, 2h]}", "need gpus"),
        ("{filled: 50%, gpus: [8]}", "need gpus"),
        ("{filled: 50%, gpus: [8], runs: [2h, 1h]}", "the smaller first"),
        ("{filled: 50%, gpus: [8], runs: [0s, 1h]}", "above 0"),
        ("{filled: 50%, gpus: [0], runs: [1h, 1h]}", "too small"),
        ("{filled: 50%, gpus: [8], runs: [1h, 1h], utilisation: [90%, 120%]}", "0 and 1"),
        ("{filled: 50%, gpus: [8], runs: [1h, 1h], skip_days: 3}", "only a trace has skip_days"),
        ("{trace: jobs.csv, filled: 50%}", "remove filled"),
        (
            "{bursts: [{at: {after: 3h}, jobs: 5}], gpus: [8], runs: [1h, 1h]}",
            "has ended by then",
        ),
    ],
)
def test_a_workload_that_says_too_little_or_too_much_is_refused(
    faults_in: Callable[..., tuple[Problem, ...]], workload: str, message: str
) -> None:
    (problem,) = faults_in(a_scenario(workload=f"workload: {workload}"), Scenario)
    assert message in problem.message


def test_a_trace_may_say_how_hard_its_jobs_work() -> None:
    text = a_scenario(workload="workload: {trace: jobs.csv, utilisation: [50%, 60%], saves: [10min, 20min]}")
    workload = parse_document(text.encode(), Scenario, file="s.yaml").workload
    assert (workload.trace, workload.utilisation, workload.saves) == ("jobs.csv", (0.5, 0.6), (600.0, 1200.0))


def test_a_name_that_does_not_ship_is_told_the_nearest() -> None:
    with pytest.raises(UnavailableError) as raised:
        find_scenario("heat-wave")
    assert raised.value.hint == "did you mean 'heatwave'?"
    assert find_scenario("mine/heat.yaml") == Path("mine/heat.yaml")
