"""Power bounds: which limits of watts could bind at a site, and what of each is taken before any job runs?

Racks and supplies that could not carry all that hangs on them at once, loops that could not cool it where
meters are believed, and a hold on the whole site while it lasts. Watts are counted from what idle nodes draw;
where nodes sleep, those that nobody uses take less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from wattline.policy.headroom.carrying import part_carried
from wattline.policy.headroom.power import usable
from wattline.spec.policy import Policy
from wattline.state import Claim, Plant, ResourceKind, Snapshot, Spot

_AMPLE = 0.7  # of a limit: where jobs count for less, nobody asks what they truly draw
_GROSS = 2.0  # of the guard: what a single meter does not wander by


class Bound(NamedTuple):
    name: str
    rule: str
    resource: int | None  # None: a hold on the site
    limit_watts: float
    resting_watts: float  # drawn with no job at all
    usable_watts: float = 0.0  # what the limit is of: without what is kept free where meters are believed
    part: float = 1.0  # of what counts there, what it carries while its pair is there


class Layout(NamedTuple):
    """What is fixed about a site."""

    carriers: dict[int, int]  # racks, supplies and loops, each with one of the nodes under it
    roots: tuple[int, ...]  # supplies that hang on none
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
        carriers.setdefault(plant.spots[node].loop_resource, node)
        above_each.add(frozenset(r for r in power if parents.get(plant.resources[r].name, "") is None))
    roots = sorted(set().union(*above_each))
    return Layout(
        carriers=dict(sorted(carriers.items())),
        roots=tuple(roots),
        each_root_carries_all=len(above_each) == 1,
        idle_watts=sum(plant.spots[node].node.idle_watts for node in plant.nodes_of_site[site]),
    )


class _Known(NamedTuple):
    """Bounds as they were found, and what they were found from."""

    policy: Policy
    found_from: tuple[list[int], list[int], list[bool], object]
    bounds: list[Bound]


def find_bounds(draft: Snapshot, policy: Policy, site: str) -> list[Bound]:
    """All that could be too little; what can carry everything at once never is."""
    layout, sharing = layout_of(draft.plant, site), policy.power_sharing
    caps, asleep = list(map(draft.cap, layout.carriers)), list(map(draft.saved, layout.carriers))
    saved = _saved_asleep(draft, policy, site)
    found_from = (caps, asleep, [hold.is_on(draft.at) for hold in sharing.holds], saved)
    known = draft.lasting.get((Bound, site))
    if isinstance(known, _Known) and known.policy is policy and known.found_from == found_from:
        return known.bounds
    bounds = _find_bounds(draft, policy, site, *saved)
    draft.lasting[Bound, site] = _Known(policy, found_from, bounds)
    return bounds


def _find_bounds(
    draft: Snapshot, policy: Policy, site: str, saved: dict[int, float], saved_at_site: float
) -> list[Bound]:
    plant, sharing = draft.plant, policy.power_sharing
    layout = layout_of(plant, site)
    kept = 1.0 - sharing.guard if sharing.by == "meters" else 1.0
    bounds = []
    for resource in layout.carriers:
        if sharing.by == "caps" and plant.kinds[resource] is ResourceKind.LOOP:
            continue  # what is promised counts there, and caps are in it
        known, watts = plant.resources[resource], usable(draft, resource, policy.thresholds)
        if known.worst > watts:
            resting_watts = known.idle - saved.get(resource, 0.0) - draft.saved(resource)
            part = part_carried(draft, layout.carriers[resource], resource)
            bounds.append(Bound(known.name, known.kind, resource, kept * watts, resting_watts, watts, part))
    for hold in sharing.holds:
        if hold.site == site and hold.is_on(draft.at):
            racks = [one for one in layout.carriers if plant.kinds[one] is ResourceKind.RACK]
            sleeping_watts = sum([draft.saved(rack) for rack in racks])
            resting_watts = layout.idle_watts - saved_at_site - sleeping_watts
            bounds.append(Bound(hold.name, "power.hold", None, kept * hold.watts, resting_watts, hold.watts))
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
                for resource, share in _carried_by(spot):
                    saved[resource] = saved.get(resource, 0.0) + share * watts
    return saved, total


def _carried_by(spot: Spot) -> tuple[tuple[int, float], ...]:
    """All that carries the watts of a node, and the share of them that counts there: heat is watts, too."""
    return (*spot.power, (spot.loop_resource, 1.0))


def shares_of(plant: Plant, claim: Claim, bounds: Sequence[Bound]) -> tuple[tuple[int, float], ...]:
    """Which bounds a claim is under, and the share of its GPUs' watts that each must carry."""
    gpus = sum([there for _, there in claim.nodes])
    shares: dict[int, float] = {}
    for node, there in claim.nodes:
        for resource, share in _carried_by(plant.spots[node]):
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
    layout, by_caps = layout_of(draft.plant, site), policy.power_sharing.by == "caps"
    wanted: dict[int, float] = {}  # by resource, what is to count as taken of it
    holds: list[float] = []  # watts left of each
    for bound, watts in zip(bounds, used, strict=True):
        if bound.resource is not None:
            wanted[bound.resource] = bound.usable_watts - bound.limit_watts + watts
        else:
            holds.append(bound.limit_watts - watts)
    if holds:
        parts = 1 if layout.each_root_carries_all else len(layout.roots)
        for root in layout.roots:
            taken = usable(draft, root, policy.thresholds) - min(holds) / parts
            wanted[root] = max(wanted.get(root, float(draft.promised(root))), taken)
    amounts = []
    for resource, watts in wanted.items():
        amount = math.ceil(watts) - draft.promised(resource)
        if amount > 0 or (amount and not by_caps):  # by caps what was promised counts, whatever is drawn
            amounts.append((resource, amount))
    draft.keep_amounts(draft.plant.site_numbers[site], amounts)


def find_over(
    draft: Snapshot, policy: Policy, site: str, bounds: Sequence[Bound], used: Sequence[float]
) -> list[float]:
    """What each bound's own meter reads beyond what its jobs are known to draw, where that is too much."""
    over = [0.0] * len(bounds)
    if policy.power_sharing.by != "meters":
        return over
    max_age, carriers = policy.thresholds.reading_max_age, layout_of(draft.plant, site).carriers
    spots, gross = draft.plant.spots, 1.0 + _GROSS * policy.power_sharing.guard
    for number, bound in enumerate(bounds):
        one = bound.resource
        if one is not None:
            most_parts = len(spots[carriers[one]].rack.supplies) or 1
            if draft.drawn(one, max_age) * most_parts <= bound.limit_watts * gross:
                continue  # whatever part of it that is
        read = read_watts(draft, policy, site, bound)
        if read > bound.limit_watts * gross:
            over[number] = max(0.0, read - used[number])
    return over


def find_excess(
    draft: Snapshot,
    policy: Policy,
    site: str,
    bounds: Sequence[Bound],
    used: Sequence[float],
    unsettled: Sequence[float],
) -> list[float]:
    """What jobs under each bound count for beyond what its own meter reads.

    Of a node with several jobs only the hungriest GPU is read, and each of them counts for as much. What the
    meter above them reads is all of them. Whoever is not in it yet (`unsettled`) counts for all it may draw.
    """
    excess = [0.0] * len(bounds)
    if policy.power_sharing.by != "meters":
        return excess
    gross = 1.0 + _GROSS * policy.power_sharing.guard
    for number, bound in enumerate(bounds):
        if used[number] <= _AMPLE * bound.limit_watts:
            continue  # there is room as it is
        read = _read_carried(draft, policy, site, bound)
        if read > 0.0:
            excess[number] = max(0.0, used[number] - gross * read - unsettled[number])
    return excess


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
        share = 1.0 if bound.resource is None else dict(_carried_by(spot)).get(bound.resource, 0.0)
        read -= share * (
            spot.node.gpus * max(0.0, told[0] - spot.node.device.idle_watts) + spot.node.idle_watts
        )
    return read


def _read_carried(draft: Snapshot, policy: Policy, site: str, bound: Bound) -> float:
    max_age, resource = policy.thresholds.reading_max_age, bound.resource
    if resource is not None:
        if not draft.is_read(resource, max_age):
            return 0.0
        # Of a pair each carries its part, and must be able to carry all.
        return draft.drawn(resource, max_age) / bound.part
    carriers = layout_of(draft.plant, site).carriers
    racks = [each for each in carriers if draft.plant.kinds[each] is ResourceKind.RACK]
    if not all(draft.is_read(rack, max_age) for rack in racks):
        return 0.0
    return sum(draft.drawn(rack, max_age) for rack in racks)
