from __future__ import annotations

from collections.abc import Callable

import pytest

from wattline.errors import Problem
from wattline.spec import Faults, parse_document


def test_a_fault_names_what_breaks_when_and_what_is_left() -> None:
    text = b"""
    faults:
      - {name: pump, at: {phase: train, step: 40}, loop: crah, flow: 30%, lasts: 2min}
      - {name: breaker, at: {after: 10s}, supply: zurich/a, rating: 50%}
    """
    pump, breaker = parse_document(text, Faults, file="faults.yaml").faults
    assert (pump.subject, pump.flow, pump.lasts, pump.at.step) == ("crah", 0.3, 120.0, 40)
    assert (breaker.subject, breaker.rating, breaker.at.after) == ("zurich/a", 0.5, 10.0)


@pytest.mark.parametrize(
    ("fault", "column", "field", "message"),
    [
        ("at: {phase: a}, loop: x, flow: 0%", 28, "faults[0].at", "a phase with a step, or a time"),
        ("at: {phase: a, step: 1, after: 1s}, loop: x, flow: 0%", 28, "faults[0].at", "a phase with a step"),
        ("at: {after: 1s}, loop: x, rating: 50%", 10, "faults[0]", "a loop says flow or supply_temperature"),
        ("at: {after: 1s}, loop: x", 10, "faults[0]", "a loop says flow or supply_temperature"),
        ("at: {after: 1s}, loop: x, rack: y, flow: 0%", 10, "faults[0]", "exactly one of loop, supply"),
        ("at: {after: 1s}, flow: 0%", 10, "faults[0]", "exactly one of loop, supply"),
        ("at: {after: 1}, loop: x, flow: 0%", 36, "faults[0].at.after", "needs a unit"),
        ("at: {after: 1s}, loop: x, flow: 150%", 56, "faults[0].flow", "between 0 and 1"),
    ],
)
def test_a_fault_that_cannot_happen_is_refused(
    faults_in: Callable[..., tuple[Problem, ...]], fault: str, column: int, field: str, message: str
) -> None:
    (problem,) = faults_in(f"faults: [{{name: fault, {fault}}}]\n", Faults)
    assert (problem.line, problem.column, problem.field) == (1, column, field)
    assert message in problem.message


def test_a_faults_file_has_at_least_one(faults_in: Callable[..., tuple[Problem, ...]]) -> None:
    (problem,) = faults_in("faults: []\n", Faults)
    assert problem.allowed == "at least 1"
