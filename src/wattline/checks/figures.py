"""Figures: which numbers of an estimate are compared with a base, under which names?"""

from __future__ import annotations

from wattline.checks.report import Estimate

FIGURES = (
    "gpu_hours",
    "cost_usd",
    "carbon_kg",
    "energy_kwh",
    "wall_hours",
    "peak_watts",
    "queue_minutes",
)


def figure_of(estimate: Estimate, name: str) -> float | None:
    """A figure by its name; of a cost the total, of a wait the half that is likeliest."""
    match name:
        case "cost_usd":
            return estimate.cost_usd.total
        case "queue_minutes":
            return estimate.queue_minutes.p50
    value: float | None = getattr(estimate, name)
    return value
