"""Objective: what does it score to put a job at a place, and to leave it waiting? Less is better.

Named terms, in USD or worth as much, for the search that decides and for the exact one that measures it:

- price: USD and carbon over as long as the job may run, with what cooling of that kind adds to each kWh
- transfer: what moving the job's checkpoint there costs; its home where all else is alike
- heat: the predicted peak temperature over the limit
- power: the less is left of the tightest thing above, the more it scores
- fragmentation: GPUs left free beside it on its nodes
- topology: switches that it is spread over, beyond the first
- waiting: GPU-hours of a job that finds no place

Not among them, as the state does not know them: when a rack last ran hot, where data sets lie besides a job's
home, which nodes are warm.
"""

from __future__ import annotations

from wattline.spec.policy import Weights
from wattline.state import JobRequest, compared_hours

# Of two places that are alike, the one where the job's checkpoint is.
_ELSEWHERE = 1e-6


def transfer_score(weights: Weights, usd: float) -> float:
    """Of a place that is not the job's home."""
    return weights.cost * usd + _ELSEWHERE


def place_score(
    weights: Weights,
    cost: float,
    warmth: float,
    left_watts: float,
    leftover_gpus: int,
    switches: int = 1,
) -> float:
    """The score of a place: `cost` is price and transfer, the rest are mild preferences."""
    score = (
        cost
        + weights.heat * warmth
        + weights.power / (1.0 + left_watts / 1000.0)
        + weights.fragmentation * leftover_gpus / (1 + leftover_gpus)
    )
    return score + weights.topology * (switches - 1) if switches > 1 else score


def waiting_score(weights: Weights, request: JobRequest) -> float:
    """The score of a job that finds no place: as if what it asks for were bought elsewhere, dearly."""
    return weights.waiting * request.gpus * compared_hours(request)
