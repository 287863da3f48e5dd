"""Reviewing: does a policy speak of what the facility has, and promise no more than it can give?"""

from __future__ import annotations

from wattline.policy.permitting.exceptions import NAMES, QUANTITIES, format_amount
from wattline.spec.policy import Policy
from wattline.state import Place, Plant, Usage
from wattline.state.account import WEEK_SECONDS, usage_of
from wattline.units import SECONDS_PER_HOUR


def review_policy(policy: Policy, plant: Plant) -> list[str]:
    """What no document is refused for, and somebody should know before it bites, or does not."""
    return [*_review_holds(policy, plant), *_review_quotas(policy, plant)]


def _review_holds(policy: Policy, plant: Plant) -> list[str]:
    """A grid event at a site that is spelled otherwise here would be kept by nobody."""
    there = ", ".join(plant.sites)
    return [
        f"power_sharing.holds: {hold.name} is about site {hold.site}, and {plant.facility.name} has {there}: "
        "nobody keeps it"
        for hold in policy.power_sharing.holds
        if hold.site not in plant.sites
    ]


def _review_quotas(policy: Policy, plant: Plant) -> list[str]:
    """Where teams were promised more in a week than the whole facility can give, with both numbers."""
    hours = WEEK_SECONDS / SECONDS_PER_HOUR
    most = Usage()
    for spot in plant.spots:
        it_kwh = spot.node.nameplate_watts * hours / 1000.0
        place = Place(spot.site.name, ((spot.node.name, spot.node.gpus),))
        most = most.plus(usage_of(spot.node.gpus * hours, it_kwh, place, plant))
    warnings = []
    for quantity, _, _ in QUANTITIES:
        quotas = [getattr(team.quota, quantity) for team in policy.teams.values()]
        total = sum(quota for quota in quotas if quota is not None)
        able: float = getattr(most, quantity)
        if total > able:
            warnings.append(
                f"quotas of {len([quota for quota in quotas if quota])} teams add up to "
                f"{format_amount(total)} {NAMES[quantity]} a week; flat out, all of {plant.facility.name} "
                f"comes to {format_amount(able)}"
            )
    return warnings
