"""Offering: what is an option, what does it cost, and is what it asks for carried?"""

from __future__ import annotations

import math

import msgspec

from wattline.policy.headroom.power import headroom_of, usable
from wattline.policy.permitting.classes import judge_class
from wattline.policy.permitting.permission import judge_permission
from wattline.policy.permitting.pools import most_used
from wattline.policy.placing.judging import empty_facility, place_alone
from wattline.policy.placing.placement import choose_place
from wattline.spec.policy import Policy
from wattline.state import JobRequest, Place, Snapshot, Usage, claim_of

replace = msgspec.structs.replace

GPUS = "resources.gpus"


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A change that was tried on the snapshot and works."""

    change: str
    starts_at: float
    cost_delta_usd: float | None
    brief: str = ""  # the same after the words "starts now"
    fields: dict[str, str | tuple[str, ...]] = {}  # what to write into the phase; empty: nothing

    @property
    def is_for_fewer_gpus(self) -> bool:
        return GPUS in self.fields


def is_carried(
    after: Snapshot, policy: Policy, request: JobRequest, place: Place, power_fraction: float = 1.0
) -> bool:
    """Whether a job that is put there is carried: all it takes stays within what may be used."""
    begun = after.copy()
    claim = claim_of(request, place, after.plant, power_fraction)
    begun.keep(claim)
    if not all(begun.gpus_free(node) >= 0 for node, _ in claim.nodes):
        return False
    thresholds, left = policy.thresholds, headroom_of(begun, policy.thresholds)
    return all(
        # What is left of something that is used up to the watt is nothing, as of what is over its limit.
        left[one] > 0.0 or begun.used(one, thresholds.reading_max_age) <= usable(begun, one, thresholds)
        for one, _ in claim.amounts
    )


def is_permitted(snapshot: Snapshot, policy: Policy, request: JobRequest) -> bool:
    asked = judge_permission(snapshot, request, policy) + judge_class(snapshot, policy, request)
    return all(verdict.allows for verdict in asked)


def usage_alone(
    snapshot: Snapshot, policy: Policy, request: JobRequest, power_fraction: float = 1.0
) -> Usage | None:
    """What a job uses at most where it would be put if it were alone; None where it would fit nowhere."""
    if power_fraction == 1.0:
        place = place_alone(snapshot, policy, request)
    else:
        empty = empty_facility(snapshot.plant).snapshot
        place = choose_place(empty, policy, request, power_fraction=power_fraction).place
    return most_used(request, place, snapshot.plant, power_fraction) if place is not None else None


def costs_more_usd(
    snapshot: Snapshot,
    request: JobRequest,
    place: Place,
    base: Usage | None,
    power_fraction: float = 1.0,
    speed: float = 1.0,
) -> float | None:
    """What a job would cost beyond what it costs as asked; None where that is not known."""
    return (
        None
        if base is None
        else most_used(request, place, snapshot.plant, power_fraction).usd / speed - base.usd
    )


def with_gpus(request: JobRequest, gpus: int) -> JobRequest:
    """The same with fewer GPUs, and as much less power."""
    watts = None if request.peak_watts is None else request.peak_watts * gpus / request.gpus
    return replace(request, gpus=gpus, peak_watts=watts)


def named_gpus(gpus: int) -> Option:
    said = f"{gpus} GPU" if gpus == 1 else f"{gpus} GPUs"
    return Option(
        change=f"ask for {said}",
        starts_at=0.0,
        cost_delta_usd=None,  # how much longer it takes then is not known
        brief=f"with {said}",
        fields={GPUS: str(gpus)},
    )


def written_seconds(seconds: float) -> str:
    """A duration as a document has it, not longer than this."""
    return f"{math.floor(seconds / 60)}min" if seconds >= 60 else f"{math.floor(seconds)}s"


def tell_options(options: tuple[Option, ...], at: float, most: int = 2) -> str:
    """What would start it now: "Starts now if capped to 92 %, or in oslo for +41.00 USD"."""
    ways = []
    for option in options:
        if option.brief and option.starts_at <= at:
            delta = option.cost_delta_usd
            price = f" for {delta:+.2f} USD" if delta is not None and abs(delta) >= 0.005 else ""
            ways.append(f"{option.brief}{price}")
    return f"Starts now {', or '.join(ways[:most])}." if ways else ""
