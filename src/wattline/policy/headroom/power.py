"""Power, cooling capacity, storage and links: does a claim fit under every cap above it?"""

from __future__ import annotations

from functools import lru_cache

from wattline.spec.policy import Thresholds
from wattline.state import Claim, Outcome, Plant, ResourceKind, Snapshot, Verdict
from wattline.state.left import Left

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


class Headroom(Left):
    """What is free of each resource, worked out once: never below zero; what is missing is a verdict's
    business."""

    __slots__ = ("thresholds",)

    def __init__(self, snapshot: Snapshot, thresholds: Thresholds) -> None:
        shares = _shares(snapshot.plant, thresholds.power_margin, thresholds.cooling_margin)
        super().__init__(snapshot, shares, thresholds.reading_max_age)
        self.thresholds = thresholds


@lru_cache(maxsize=64)
def _shares(plant: Plant, power_margin: float, cooling_margin: float) -> list[float]:
    """What of each resource's cap may be used."""
    kept_free = {
        ResourceKind.RACK: power_margin,
        ResourceKind.SUPPLY: power_margin,
        ResourceKind.LOOP: cooling_margin,
    }
    return [1.0 - kept_free.get(kind, 0.0) for kind in plant.kinds]


def headroom_of(snapshot: Snapshot, thresholds: Thresholds) -> Headroom:
    """The headroom of a snapshot as it is laid out now; kept with it until something more is laid over."""
    known = snapshot.derived
    if isinstance(known, Headroom) and known.thresholds is thresholds:
        return known
    found = snapshot.derived = Headroom(snapshot, thresholds)
    return found


def carry_headroom(before: Snapshot, after: Snapshot, thresholds: Thresholds) -> None:
    """What is known before more is laid over holds after it, but for that over which something is laid."""
    found = after.derived = Headroom(after, thresholds)
    found.update(headroom_of(before, thresholds))
    for resource in after.laid_resources:
        found.pop(resource, None)


_NAMES = {kind: (f"asked_{unit}", f"left_{unit}", f"short_by_{unit}") for kind, unit in UNITS.items()}


def judge_amount(
    snapshot: Snapshot, resource: int, amount: float, thresholds: Thresholds, job: str = ""
) -> Verdict:
    """Judge the peak, not the average: a breaker trips on the peak."""
    return _judge(snapshot, headroom_of(snapshot, thresholds), resource, amount, job)


def _judge(snapshot: Snapshot, headroom: Headroom, resource: int, amount: float, job: str) -> Verdict:
    known = snapshot.plant.resources[resource]
    kind, name = known.kind, known.name
    asked, left_over, short_by = _NAMES[kind]
    left = headroom[resource]
    if amount > left:
        return Verdict(
            rule=kind,
            subject=name,
            outcome=Outcome.WAIT,
            job=job,
            numbers={short_by: amount - left, asked: amount, left_over: left},
            change=f"{name} frees {amount - left:.0f} {UNITS[kind]}",
        )
    numbers = {asked: amount, left_over: left - amount}
    return Verdict(rule=kind, subject=name, outcome=Outcome.ALLOW, job=job, numbers=numbers)


def judge_claim(snapshot: Snapshot, claim: Claim, thresholds: Thresholds, job: str = "") -> list[Verdict]:
    """A verdict of everything that is short, and of the tightest of each kind that is not."""
    headroom, kinds = headroom_of(snapshot, thresholds), snapshot.plant.kinds
    verdicts: list[Verdict] = []
    tightest: dict[ResourceKind, tuple[float, int, int]] = {}
    for resource, amount in claim.amounts:
        left = headroom[resource] - amount
        if left < 0:
            verdicts.append(_judge(snapshot, headroom, resource, float(amount), job))
        elif amount > 0:
            kind = kinds[resource]
            if kind not in tightest or left < tightest[kind][0]:
                tightest[kind] = (left, resource, amount)
    for _, resource, amount in tightest.values():
        verdicts.append(_judge(snapshot, headroom, resource, float(amount), job))
    return verdicts
