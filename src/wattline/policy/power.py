"""Power, cooling capacity, storage and links: does a claim fit under every cap above it?"""

from __future__ import annotations

from wattline.spec.policy import Thresholds
from wattline.state import Claim, Outcome, Plant, ResourceKind, Snapshot, Verdict

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


class Headroom(dict[int, float]):
    """What is free of each resource, worked out once: never below zero; what is missing is a verdict's
    business."""

    __slots__ = ("_limits", "_snapshot", "thresholds")

    def __init__(self, snapshot: Snapshot, thresholds: Thresholds) -> None:
        super().__init__()
        self._snapshot, self.thresholds = snapshot, thresholds
        self._limits = (
            1.0 - thresholds.power_margin,
            1.0 - thresholds.cooling_margin,
            thresholds.reading_max_age,
        )

    def __missing__(self, resource: int) -> float:
        left = self[resource] = self._snapshot.left(resource, *self._limits)
        return left


def headroom_of(snapshot: Snapshot, thresholds: Thresholds) -> Headroom:
    """The headroom of a snapshot as it is laid out now; kept with it until something more is laid over."""
    known = snapshot.derived
    if isinstance(known, Headroom) and known.thresholds is thresholds:
        return known
    found = snapshot.derived = Headroom(snapshot, thresholds)
    return found


class RackRoom:
    """How many GPUs at their limit each bay's rack still carries, worked out when the rack has changed.

    Most racks of a well-filled facility are full, and most searches would otherwise find that out again.
    """

    __slots__ = ("_known", "thresholds")

    def __init__(self, plant: Plant, thresholds: Thresholds) -> None:
        self.thresholds = thresholds
        self._known: list[tuple[int, int]] = [(-1, 0)] * len(plant.bays)

    @staticmethod
    def of(snapshot: Snapshot, thresholds: Thresholds) -> RackRoom:
        found = snapshot.lasting.get(RackRoom)
        if not isinstance(found, RackRoom) or found.thresholds is not thresholds:
            found = snapshot.lasting[RackRoom] = RackRoom(snapshot.plant, thresholds)
        return found

    def gpus(self, snapshot: Snapshot, bay: int, headroom: Headroom, watts: int) -> int:
        """`watts` are what one GPU of the bay takes of its rack."""
        rack = snapshot.plant.bays[bay].rack_resource
        stamp = snapshot.stamp(rack, self.thresholds.reading_max_age)
        if stamp is None:
            return int(headroom[rack] // watts)
        known = self._known[bay]
        if known[0] != stamp:
            known = self._known[bay] = (stamp, int(headroom[rack] // watts))
        return known[1]


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
    """Every finite thing a claim takes of, each with its verdict."""
    headroom = headroom_of(snapshot, thresholds)
    return [
        _judge(snapshot, headroom, resource, float(amount), job)
        for resource, amount in claim.amounts
        if amount > 0
    ]
