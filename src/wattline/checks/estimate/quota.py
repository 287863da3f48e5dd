"""Quota: what has a team left this week?"""

from __future__ import annotations

from wattline.checks.report import Left
from wattline.policy.permitting.exceptions import limit_of
from wattline.spec import Policy
from wattline.state import Snapshot

_QUANTITIES = ("gpu_hours", "usd", "kwh", "kg_co2e")


def left_of(snapshot: Snapshot, policy: Policy, project: str) -> Left | None:
    """What was used and what running jobs were promised is gone. None: the policy sets the team no quota."""
    if project not in policy.teams:
        return None
    committed = snapshot.account(project).committed
    found: dict[str, float] = {}
    for name in _QUANTITIES:
        limit = limit_of(snapshot, policy, project, name)
        if limit is not None:
            found[name] = max(0.0, limit - getattr(committed, name))
            found[f"{name}_of"] = limit
    return Left(**found) if found else None
