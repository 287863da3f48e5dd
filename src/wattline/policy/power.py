"""Power, cooling capacity, storage and links: does a claim fit under every cap above it?"""

from __future__ import annotations

from wattline.spec.policy import Thresholds
from wattline.state import POWER, Claim, ResourceKind, Snapshot, Verdict

UNITS = {
    ResourceKind.RACK: "watts",
    ResourceKind.SUPPLY: "watts",
    ResourceKind.LOOP: "watts",
    ResourceKind.LINK: "bits_per_second",
    ResourceKind.STORAGE: "bytes_per_second",
}


def usable(snapshot: Snapshot, resource: int, thresholds: Thresholds) -> float:
    """What may be used of a resource: its cap as it is now, less what the policy keeps free."""
    kind = snapshot.plant.resources[resource].kind
    cap = float(snapshot.cap(resource))
    if kind is ResourceKind.LOOP:
        return cap * (1 - thresholds.cooling_margin)
    return cap * (1 - thresholds.power_margin) if kind in POWER else cap


def free(snapshot: Snapshot, resource: int, thresholds: Thresholds) -> float:
    """Headroom: never below zero; what is missing is a verdict's business."""
    left = usable(snapshot, resource, thresholds) - snapshot.used(resource, thresholds.reading_max_age)
    return max(0.0, left)


def judge_amount(snapshot: Snapshot, resource: int, amount: float, thresholds: Thresholds) -> Verdict:
    """Judge the peak, not the average: a breaker trips on the peak."""
    kind, name = snapshot.plant.resources[resource].kind, snapshot.plant.resources[resource].name
    unit = UNITS[kind]
    left = free(snapshot, resource, thresholds)
    if amount > left:
        numbers = {f"short_by_{unit}": amount - left, f"asked_{unit}": amount, f"left_{unit}": left}
        return Verdict.wait(kind, name, change=f"{name} frees {amount - left:.0f} {unit}", **numbers)
    return Verdict.allow(kind, name, **{f"asked_{unit}": amount, f"left_{unit}": left - amount})


def judge_claim(snapshot: Snapshot, claim: Claim, thresholds: Thresholds) -> list[Verdict]:
    """Every finite thing a claim takes of, each with its verdict."""
    return [
        judge_amount(snapshot, resource, float(amount), thresholds)
        for resource, amount in claim.amounts
        if amount > 0
    ]
