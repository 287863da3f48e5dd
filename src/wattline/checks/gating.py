"""Gating: does what a run is expected to take and cost stay within what the team's review asks?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from wattline.checks.figures import FIGURES, figure_of
from wattline.checks.report import Difference, Estimate, Said
from wattline.spec import ExpressionError, Policy, compile_expression
from wattline.spec.policy import REVIEW_FIGURES


def judge_estimate(policy: Policy, estimate: Estimate, diff: Mapping[str, Difference]) -> Iterator[Said]:
    """Every gate of the review, also after one has failed. What is not known is a warning, never a pass."""
    values = _values(estimate, diff)
    for gate in policy.review.gates:
        expression = compile_expression(gate, REVIEW_FIGURES)
        unknown = [name for name in expression.names if name not in values]
        found = ", ".join(f"{name} = {values[name]:g}" for name in expression.names if name in values)
        if unknown:
            yield _said(gate, "warn", f"{', '.join(unknown)} is not known")
            continue
        try:
            yield _said(gate, "allow" if expression.holds(values) else "refuse", found)
        except ExpressionError as error:
            yield _said(gate, "warn", error.message)


def _values(estimate: Estimate, diff: Mapping[str, Difference]) -> dict[str, float]:
    known = {name: figure_of(estimate, name) for name in FIGURES}
    known["wall_p90_hours"] = estimate.wall.p90
    known["queue_p90_minutes"] = estimate.queue_minutes.p90
    known |= {f"{name}_added": difference.delta for name, difference in diff.items()}
    return {name: value for name, value in known.items() if value is not None}


def _said(gate: str, outcome: Literal["allow", "warn", "refuse"], found: str) -> Said:
    return Said(
        phase="run",  # all phases together
        rule="review.gate",
        mode="block",
        outcome=outcome,
        message=f"{gate}: {found}",
        fix="ask for less, or have the gate changed" if outcome == "refuse" else "",
    )
