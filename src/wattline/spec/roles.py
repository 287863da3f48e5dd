"""`roles` in `policy.yaml`: who may say yes to what?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from wattline.spec.flaws import Flaw, FlawedError
from wattline.spec.nearest import nearest
from wattline.spec.quantities import Name

# Who answers requests for exceptions, where a team names no other role.
CAPACITY_APPROVER = "capacity-approver"

Roles = Annotated[dict[Name, Annotated[tuple[Name, ...], Field(max_length=1000)]], Field(max_length=200)]


def check_approvers(roles: Mapping[str, object], approvers: Mapping[str, str]) -> None:
    """Every role that a team names has people; the usual one may have none, and then nobody approves."""
    flaws = [
        Flaw(
            at=("teams", team, "approvers"),
            message="roles names nobody for this",
            value=repr(role),
            allowed=", ".join(roles) or None,
            nearest=nearest(role, list(roles)),
        )
        for team, role in approvers.items()
        if role not in roles and role != CAPACITY_APPROVER
    ]
    if flaws:
        raise FlawedError(flaws)
