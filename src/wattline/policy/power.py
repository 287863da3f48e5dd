"""Power, cooling capacity, storage and links: does a claim fit under every cap above it?"""

from __future__ import annotations

from wattline.spec.policy import Thresholds
from wattline.state import Claim, ResourceKind, Snapshot, Verdict

UNITS = {
    ResourceKind.RACK: "watts",
    ResourceKind.SUPPLY: "watts",
    ResourceKind.LOOP: "watts",
    ResourceKind.LINK: "bits_per_second",
    ResourceKind.STORAGE: "bytes_per_second",
}


def usable(snapshot: Snapshot, resource: int, thresholds: Thresholds) -> float:
    """What may be used of a resource: its cap as it is now, less what the policy keeps free."""
    kind, cap = snapshot.plant.kinds[resource], snapshot.cap(resource)
    if kind is ResourceKind.RACK or kind is ResourceKind.SUPPLY:
        return cap * (1.0 - thresholds.power_margin)
    return cap * (1.0 - thresholds.cooling_margin) if kind is ResourceKind.LOOP else float(cap)


def free(snapshot: Snapshot, resource: int, thresholds: Thresholds) -> float:
    """Headroom: never below zero; what is missing is a verdict's business."""
    left = usable(snapshot, resource, thresholds) - snapshot.used(resource, thresholds.reading_max_age)
    return max(0.0, left)


class Headroom(dict[int, float]):
    """What is free of each resource, worked out once: many places hang on the same ones."""

    __slots__ = ("_snapshot", "_thresholds")

    def __init__(self, snapshot: Snapshot, thresholds: Thresholds) -> None:
        super().__init__()
        self._snapshot, self._thresholds = snapshot, thresholds

    def __missing__(self, resource: int) -> float:
        left = self[resource] = free(self._snapshot, resource, self._thresholds)
        return left


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
