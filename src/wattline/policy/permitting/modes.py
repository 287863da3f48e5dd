"""Modes: does a phase that can run in two ways run canonically or approximately?

What a release rests on is canonical, unless the policy says that too little is at risk. All else is
approximate where its team has little left, or where it would cost much. Chosen when a job first starts, and
kept to: what was begun one way cannot be finished the other.
"""

from __future__ import annotations

import msgspec

from wattline.policy.permitting.exceptions import QUANTITIES, limit_of
from wattline.policy.permitting.pools import pools_for
from wattline.spec.policy import Policy
from wattline.state import Job, Outcome, Place, Snapshot, Verdict
from wattline.state.account import promise_of

AUTO = "auto"
CANONICAL, APPROXIMATE = "canonical", "approximate"


def with_mode(draft: Snapshot, policy: Policy, job: Job) -> tuple[Job, tuple[Verdict, ...]]:
    """The job as it would start now, and why so; as it is, where there is nothing to choose."""
    if job.request.mode != AUTO or job.mode:
        return job, ()
    mode, say, numbers = _choose(draft, policy, job)
    verdict = Verdict(
        rule=f"mode.{mode}",
        subject=job.request.phase,
        outcome=Outcome.ALLOW,
        job=job.id,
        numbers=numbers,
        say=say,
    )
    return msgspec.structs.replace(job, mode=mode), (verdict,)


def _choose(draft: Snapshot, policy: Policy, job: Job) -> tuple[str, str, dict[str, float]]:
    request, modes = job.request, policy.modes
    numbers: dict[str, float] = {}
    if request.channel:
        risk = modes.risk_of(request.channel, request.change)
        numbers = {"risk_fraction": risk, "limit_fraction": modes.canonical_above}
        if risk > modes.canonical_above or not modes.canonical_above:
            return CANONICAL, f"a release to {request.channel} rests on it", numbers
    left = _left_of_budgets(draft, policy, request.project)
    if left is not None:
        numbers["budget_left_fraction"] = left
    cost = _most_usd(draft, policy, job)
    if cost is not None:
        numbers["cost_usd"] = cost
    if modes.budget_below is not None and left is not None and left < modes.budget_below:
        numbers["budget_limit_fraction"] = modes.budget_below
        return APPROXIMATE, f"little is left of a budget of {request.project}", numbers
    if modes.cost_above is not None and cost is not None and cost > modes.cost_above:
        numbers["limit_usd"] = modes.cost_above
        return APPROXIMATE, "it would cost much", numbers
    return CANONICAL, "nothing asks for less", numbers


def _left_of_budgets(draft: Snapshot, policy: Policy, project: str) -> float | None:
    """What is left of the budget of which least is left, as a share; None: the team has none."""
    committed = draft.account(project).committed
    shares = []
    for name, _, _ in QUANTITIES:
        limit = limit_of(draft, policy, project, name)
        if limit is not None:
            shares.append(max(0.0, 1.0 - getattr(committed, name) / limit) if limit > 0.0 else 0.0)
    return min(shares, default=None)


def _most_usd(draft: Snapshot, policy: Policy, job: Job) -> float | None:
    """The most a job costs canonically where it is cheapest; None where it set no end or fits nowhere."""
    request, plant = job.remainder, draft.plant
    pools = pools_for(plant, policy, request)
    if request.max_duration_seconds is None or not pools:
        return None
    bay = plant.bays[plant.bays_of_pool[pools[0][1]][0]]
    spot = plant.spots[bay.first]
    place = Place(spot.site.name, ((spot.node.name, request.gpus),))
    return promise_of(request, place, plant, 1.0, request.max_duration_seconds).usd
