"""Power bounds: which limits of watts could bind at a site, and what of each is taken before any job runs?

Racks and supplies that could not carry all that hangs on them at once, and a hold on the whole site while it
lasts. Watts are counted from what idle nodes draw; where nodes sleep, those that nobody uses take less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from wattline.policy.carrying import part_carried
from wattline.policy.power import usable
from wattline.spec.policy import Policy
from wattline.state import Claim, Plant, ResourceKind, Snapshot


class Bound(NamedTuple):
    name: str
    rule: str
    resource: int | None  # None: a hold on the site
    limit_watts: float
    resting_watts: float  # drawn with no job at all


class Layout(NamedTuple):
    """What is fixed about a site."""

    carriers: tuple[tuple[int, int], ...]  # racks and supplies, each with one of the nodes under it
    roots: tuple[tuple[int, int], ...]  # supplies that hang on none, likewise
    each_root_carries_all: bool
    idle_watts: float


@lru_cache(maxsize=64)
def layout_of(plant: Plant, site: str) -> Layout:
    carriers: dict[int, int] = {}
    parents = {supply.name: supply.parent for supply in plant.sites[site].supplies}
    above_each = set()
    for node in plant.nodes_of_site[site]:
        power = [resource for resource, _ in plant.spots[node].power]
        for resource in power:
            carriers.setdefault(resource, node)
        above_each.add(frozenset(r for r in power if parents.get(plant.resources[r].name, "") is None))
    roots = sorted(set().union(*above_each))
    return Layout(
        carriers=tuple(sorted(carriers.items())),
        roots=tuple([(root, carriers[root]) for root in roots]),
        each_root_carries_all=len(above_each) == 1,
        idle_watts=sum(plant.spots[node].node.idle_watts for node in plant.nodes_of_site[site]),
    )


def find_bounds(draft: Snapshot, policy: Policy, site: str) -> list[Bound]:
    """All that could be too little; what can carry everything at once never is."""
    plant, sharing = draft.plant, policy.power_sharing
    layout = layout_of(plant, site)
    by_meters = sharing.by == "meters"
    kept = 1.0 - sharing.guard if by_meters else 1.0
    saved, saved_at_site = _saved_asleep(draft, policy, site)
    bounds = []
    for resource, _ in layout.carriers:
        known, limit_watts = plant.resources[resource], usable(draft, resource, policy.thresholds)
        if known.worst > limit_watts:
            resting_watts = known.idle - saved.get(resource, 0.0) - draft.saved(resource)
            bounds.append(Bound(known.name, known.kind, resource, kept * limit_watts, resting_watts))
    for hold in sharing.holds:
        if hold.site == site and hold.is_on(draft.at):
            racks = [one for one, _ in layout.carriers if plant.kinds[one] is ResourceKind.RACK]
            sleeping_watts = sum([draft.saved(rack) for rack in racks])
            resting_watts = layout.idle_watts - saved_at_site - sleeping_watts
            bounds.append(Bound(hold.name, "power.hold", None, kept * hold.watts, resting_watts))
    return bounds


def _saved_asleep(draft: Snapshot, policy: Policy, site: str) -> tuple[dict[int, float], float]:
    """What sleeping nodes draw less than idle ones, by what carries them and in all."""
    saved: dict[int, float] = {}
    total = 0.0
    share_saved, plant = 1.0 - policy.power_sharing.asleep, draft.plant
    if share_saved <= 0.0:
        return saved, total
    for pool in plant.pools_of_site[plant.site_numbers[site]]:
        for node in draft.nodes_with(pool, plant.biggest_of_pool[pool]):
            spot = plant.spots[node]
            if not draft.jobs_at(node):
                watts = share_saved * spot.node.idle_watts
                total += watts
                for resource, share in spot.power:
                    saved[resource] = saved.get(resource, 0.0) + share * watts
    return saved, total


def shares_of(plant: Plant, claim: Claim, bounds: Sequence[Bound]) -> tuple[tuple[int, float], ...]:
    """Which bounds a claim is under, and the share of its GPUs' watts that each must carry."""
    gpus = sum([there for _, there in claim.nodes])
    shares: dict[int, float] = {}
    for node, there in claim.nodes:
        for resource, share in plant.spots[node].power:
            shares[resource] = shares.get(resource, 0.0) + share * there / gpus
    return tuple(
        [
            (number, 1.0 if bound.resource is None else shares[bound.resource])
            for number, bound in enumerate(bounds)
            if bound.resource is None or bound.resource in shares
        ]
    )


def lay_used(
    draft: Snapshot, policy: Policy, site: str, bounds: Sequence[Bound], used: Sequence[float]
) -> None:
    """Let everyone who looks for room find what the bounds leave, whatever was promised."""
    thresholds, layout = policy.thresholds, layout_of(draft.plant, site)
    left = {root: float(usable(draft, root, thresholds) - draft.promised(root)) for root, _ in layout.roots}
    nodes = dict(layout.carriers)
    for bound, watts in zip(bounds, used, strict=True):
        if bound.resource is not None:
            left[bound.resource] = bound.limit_watts - watts
    for bound, watts in zip(bounds, used, strict=True):
        if bound.resource is None:
            parts = 1 if layout.each_root_carries_all else len(layout.roots)
            for root, _ in layout.roots:
                left[root] = min(left[root], (bound.limit_watts - watts) / parts)
    for resource, watts in left.items():
        wanted = math.ceil(usable(draft, resource, thresholds) - watts)
        amount = wanted - draft.promised(resource)
        if policy.power_sharing.by == "caps":  # what was promised counts, whatever is drawn
            amount = max(0, amount)
        if amount:
            draft.keep(
                Claim(
                    nodes=((nodes[resource], 0),), millicpus=0, amounts=((resource, amount),), gpu_watts=0.0
                )
            )


def read_watts(draft: Snapshot, policy: Policy, site: str, bound: Bound) -> float:
    """What a bound's own meter says that it carries; nothing where it has none, or none to be believed.

    Without what nodes are still read to draw that nobody uses any more: all meters are late alike.
    """
    read = _read_carried(draft, policy, site, bound)
    if read <= bound.limit_watts:
        return read
    for node in draft.plant.nodes_of_site[site]:
        spot, told = draft.plant.spots[node], draft.conditions.node_gpu_watts.get(node)
        if told is None or spot.node.device is None or draft.jobs_at(node):
            continue
        share = 1.0 if bound.resource is None else dict(spot.power).get(bound.resource, 0.0)
        read -= share * (
            spot.node.gpus * max(0.0, told[0] - spot.node.device.idle_watts) + spot.node.idle_watts
        )
    return read


def _read_carried(draft: Snapshot, policy: Policy, site: str, bound: Bound) -> float:
    max_age, resource = policy.thresholds.reading_max_age, bound.resource
    layout = layout_of(draft.plant, site)
    if resource is not None:
        if not draft.is_read(resource, max_age):
            return 0.0
        # Of a pair each carries its part, and must be able to carry all.
        part = part_carried(draft, dict(layout.carriers)[resource], resource)
        return draft.drawn(resource, max_age) / part
    racks = [each for each, _ in layout.carriers if draft.plant.kinds[each] is ResourceKind.RACK]
    if not all(draft.is_read(rack, max_age) for rack in racks):
        return 0.0
    return sum(draft.drawn(rack, max_age) for rack in racks)
