"""Fairness: who holds less than its share of the fleet, and so goes first?

A team stands by the GPUs that it holds and held lately, for its weight: the lower, the sooner its turn.
"""

from __future__ import annotations

from wattline.spec.policy import Policy
from wattline.state import Snapshot

_MEMORIES = {"day": 0, "week": 1, "month": 2}


def weight_of(project: str, policy: Policy) -> float:
    """A project that the policy does not name counts as a team like any other."""
    team = policy.teams.get(project)
    return team.weight if team is not None else 1.0


class Fairness:
    """Standings while a decision is made: what it starts counts at once."""

    def __init__(self, draft: Snapshot, policy: Policy) -> None:
        self._draft, self._policy = draft, policy
        self._memory = _MEMORIES[policy.sharing.memory]
        self._known: dict[str, tuple[float, float]] = {}  # GPUs now and lately, and the weight

    def standing(self, project: str, more_gpus: int = 0) -> float:
        """What it holds and held lately, for its weight; as it would be with so many more."""
        gpus, weight = self._known.get(project) or self._look(project)
        return (gpus + more_gpus) / weight

    def take(self, project: str, gpus: int) -> None:
        """A decision gives a team so many more, or asks for them back."""
        before, weight = self._known.get(project) or self._look(project)
        self._known[project] = (before + gpus, weight)

    def _look(self, project: str) -> tuple[float, float]:
        share = self._draft.account(project).share
        gpus = share.gpus + share.faded(self._draft.at)[self._memory]
        known = self._known[project] = (gpus, weight_of(project, self._policy))
        return known
