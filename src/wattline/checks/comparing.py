"""Comparing: what does a change cost more or less than its base, and does the team want to hear of it?"""

from __future__ import annotations

from collections.abc import Mapping

from wattline.checks.figures import FIGURES, figure_of
from wattline.checks.report import Answer, Cost, Difference, Estimate
from wattline.spec.policy import Quota

# What is not there costs nothing: a pipeline that is added or removed is compared with this.
NOTHING = Estimate(
    gpu_hours=0.0,
    wall_hours=0.0,
    energy_kwh=0.0,
    carbon_kg=0.0,
    cost_usd=Cost(compute=0.0, energy=0.0, transfer=0.0, storage=0.0, total=0.0),
)
_THRESHOLDS = {"gpu_hours": "gpu_hours", "usd": "cost_usd", "kwh": "energy_kwh", "kg_co2e": "carbon_kg"}


def compare(base: Estimate, head: Estimate) -> dict[str, Difference]:
    """Every figure that one of them knows."""
    both = {name: (figure_of(base, name), figure_of(head, name)) for name in FIGURES}
    return {name: _difference(*pair) for name, pair in both.items() if pair != (None, None)}


def is_worth_a_comment(diff: Mapping[str, Difference], above: Quota, verdict: Answer) -> bool:
    """What is not pass is always told, and so is a difference that is not known where a bound is set."""
    bounds = {figure: getattr(above, name) for name, figure in _THRESHOLDS.items()}
    bounds = {figure: bound for figure, bound in bounds.items() if bound is not None}
    if verdict != "pass" or not bounds or not diff:
        return True
    known = [(diff[figure].delta, bound) for figure, bound in bounds.items() if figure in diff]
    return any(delta is None or abs(delta) > bound for delta, bound in known)


def _difference(base: float | None, head: float | None) -> Difference:
    if base is None or head is None:
        return Difference(base=base, head=head, delta=None, fraction=None)
    return Difference(
        base=base, head=head, delta=head - base, fraction=(head - base) / base if base else None
    )
