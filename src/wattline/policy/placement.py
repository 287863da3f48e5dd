"""Placement: among the places where a job fits, which is best; and where it fits nowhere, what is closest?

Places are first weighed by numbers alone; only the one that is taken, or that came closest, is judged in
full, with a verdict of every rule.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from wattline.policy.gang import ONE_NODE, Spread
from wattline.policy.heat import Coolness, judge_heat
from wattline.policy.permission import allowed_models, judge_budget
from wattline.policy.power import Headroom, RackRoom, headroom_of, judge_claim
from wattline.spec.policy import Policy
from wattline.state import (
    Claim,
    JobRequest,
    Place,
    Plant,
    ResourceKind,
    Snapshot,
    Usage,
    Verdict,
    claim_of,
    peak_watts_on,
    usage_of,
)
from wattline.state.claim import saving_of, taking_of
from wattline.units import SECONDS_PER_HOUR

# Placement looks at this many feasible places, the cheapest first, before it takes the best of them.
_ENOUGH = 4
# What another arrangement of the same GPUs may change.
_ARRANGED = frozenset({ResourceKind.RACK, ResourceKind.SUPPLY, ResourceKind.LOOP, "heat.throttle"})
# Where a job set no end, places are compared over this long.
_COMPARED_SECONDS = SECONDS_PER_HOUR

_NOT_IN_WATTS = (ResourceKind.LINK, ResourceKind.STORAGE)

Nodes = tuple[tuple[int, int], ...]  # node number, GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A place with its verdicts, or the verdicts of what came closest and what to watch until then."""

    place: Place | None
    verdicts: tuple[Verdict, ...]
    usage: Usage = Usage()  # what the job would use there, if it ran as long as it may
    score: float = 0.0
    short: frozenset[int] = frozenset()  # of what is above racks, what was short at one that was tried
    # By pool, what a job that may spread found too few of.
    lacking_gpus: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Where:
    """All that needs to be looked at, where the rest is known not to fit."""

    bays: Collection[int]  # for a place on one node
    pools: Collection[int]  # those they are of
    spread_pools: Collection[int]  # for a place over several


@dataclass(slots=True)
class _Search:
    """One search for a place: what is asked, what is free, and the best and the closest so far."""

    snapshot: Snapshot
    policy: Policy
    request: JobRequest
    power_fraction: float
    near: str | None
    headroom: Headroom
    coolness: Coolness
    best: Nodes = ()
    best_score: float = math.inf
    closest: Nodes = ()
    closest_distance: float = math.inf
    short: set[int] = field(default_factory=set)
    # By pool, the roomiest rack that did not carry so many GPUs, with a node of it.
    passed_over: dict[int, tuple[int, int]] = field(default_factory=dict)

    def weigh(
        self, nodes: Nodes, amounts: Iterable[tuple[int, int]], warmth: float | None, cost: float
    ) -> bool:
        """Take note of a place by its numbers alone; whether the job fits there.

        `warmth` is how near its limit its hottest GPU would end; None where that must be looked at closely.
        """
        headroom, kinds = self.headroom, self.snapshot.plant.kinds
        least_watts = math.inf
        missing = 0.0
        for resource, amount in amounts:
            left = headroom[resource] - amount
            if left < 0 < amount:
                missing -= left / amount
                if kinds[resource] is not ResourceKind.RACK:
                    self.short.add(resource)
            elif left < least_watts and amount > 0 and kinds[resource] not in _NOT_IN_WATTS:
                least_watts = left
        if missing:
            self._note_closest(nodes, missing)
            return False
        if warmth is None or self.request.project in self.policy.teams:
            return self._look_closer(nodes, cost)
        self._note_best(nodes, cost, warmth, least_watts)
        return True

    def place(self, nodes: Nodes) -> Place:
        spots = self.snapshot.plant.spots
        site = spots[nodes[0][0]].site.name
        return Place(site, tuple([(spots[node].node.name, gpus) for node, gpus in nodes]))

    def _look_closer(self, nodes: Nodes, cost: float) -> bool:
        """Heat that may come later, and budgets, are judged in full."""
        verdicts = self.judge(nodes)
        against = [verdict for verdict in verdicts if not verdict.allows]
        if against:
            numbers, kinds = self.snapshot.plant.resource_number, self.snapshot.plant.kinds
            found = [numbers[verdict.subject] for verdict in against if verdict.subject in numbers]
            self.short.update(one for one in found if kinds[one] is not ResourceKind.RACK)
            self._note_closest(nodes, _distance(against))
            return False
        warmth, least_watts = 0.0, math.inf
        for verdict in verdicts:
            predicted = verdict.numbers.get("predicted_celsius")
            if predicted is not None:
                warmth = max(warmth, predicted / verdict.numbers["limit_celsius"])
            least_watts = min(least_watts, verdict.numbers.get("left_watts", math.inf))
        self._note_best(nodes, cost, warmth, least_watts)
        return True

    def judge(self, nodes: Nodes) -> tuple[Verdict, ...]:
        """Everything that is asked of a place, each rule with its verdict."""
        snapshot, policy, request = self.snapshot, self.policy, self.request
        place = self.place(nodes)
        claim = claim_of(request, place, snapshot.plant, self.power_fraction)
        verdicts = judge_claim(snapshot, claim, policy.thresholds, request.job)
        verdicts += judge_heat(snapshot, request, claim, policy.thresholds)
        if request.project in policy.teams:
            peak_watts = _peak_watts(snapshot, request, place, self.power_fraction)
            verdicts += judge_budget(snapshot, request, place, peak_watts, policy)
        return tuple(verdicts)

    def _note_best(self, nodes: Nodes, cost: float, warmth: float, least_watts: float) -> None:
        """Dollars and kilograms, plus mild preferences for cool, roomy and tightly packed places."""
        weights, snapshot = self.policy.weights, self.snapshot
        leftover = sum([snapshot.gpus_free(node) - gpus for node, gpus in nodes])
        score = (
            cost
            + weights.heat * warmth
            + weights.power / (1.0 + least_watts / 1000.0)
            + weights.fragmentation * leftover / (1 + leftover)
        )
        if self.near is not None and (site := snapshot.plant.spots[nodes[0][0]].site.name) != self.near:
            score += weights.cost * transfer_usd(snapshot, self.near, site) + 1e-6
        if score < self.best_score:
            self.best, self.best_score = nodes, score

    def _note_closest(self, nodes: Nodes, distance: float) -> None:
        if distance < self.closest_distance:
            self.closest, self.closest_distance = nodes, distance


def choose_place(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    *,
    power_fraction: float = 1.0,
    near: str | None = None,
    sites: Collection[str] | None = None,
    where: Where | None = None,
) -> Choice:
    """The best feasible place, cheapest by the policy's weights; ties go to the first in the facility.

    Where only a part was looked at and nothing fitted there, nothing is said about it.
    """
    search = _Search(
        snapshot,
        policy,
        request,
        power_fraction,
        near,
        headroom_of(snapshot, policy.thresholds),
        Coolness(snapshot, request, policy.thresholds),
    )
    hours = (request.max_duration_seconds or _COMPARED_SECONDS) / SECONDS_PER_HOUR
    spreads = request.gpus > 1 and request.locality not in ONE_NODE
    lacking: dict[int, int] = {}
    pools = pools_for(snapshot.plant, policy, request, sites, power_fraction)
    standard = request.gpus > 0 and request.peak_watts is None and power_fraction == 1.0
    full = RackRoom.of(snapshot, policy.thresholds) if standard else None
    fitting = 0
    for each, pool in pools:
        cost = each * hours
        if fitting >= _ENOUGH or search.best_score <= cost:
            break  # what is left costs as much or more, however roomy it is
        tried = 0
        if where is None or pool in where.pools:
            tried = _weigh_single(search, pool, cost, None if where is None else where.bays, full)
        # A job that fits on one node is not spread over several.
        if spreads and not tried and (where is None or pool in where.spread_pools):
            lacking[pool] = _weigh_gangs(search, pool, cost, quick=where is not None)
        fitting += tried
    if search.best:
        place = search.place(search.best)
        return Choice(
            place=place,
            verdicts=search.judge(search.best),
            usage=_usage(snapshot, request, place, power_fraction),
            score=search.best_score,
        )
    if request.peak_watts is not None:
        # A GPU that is given back may make room for more than one that draws less.
        lacking = dict.fromkeys(lacking, 0)
    if where is None:  # a rack that was passed over may be what comes closest
        for _, node in search.passed_over.values():
            taking = taking_of(request, snapshot.plant, node, request.gpus)
            search.weigh(((node, request.gpus),), taking.amounts, 0.0, 0.0)
    verdicts: tuple[Verdict, ...] = ()
    if search.closest and (where is None or request.project in policy.teams):
        verdicts = search.judge(search.closest)
    elif where is None:
        verdicts = (_judge_existence(snapshot, policy, request, sites),)
    return Choice(place=None, verdicts=verdicts, short=frozenset(search.short), lacking_gpus=lacking)


def _weigh_single(
    search: _Search, pool: int, cost: float, bays: Collection[int] | None, full: RackRoom | None
) -> int:
    """Weigh places on one node, tightest fit first; how many were found to fit.

    `full` passes over racks that are known not to carry so many GPUs at their limit.
    """
    snapshot, request, plant = search.snapshot, search.request, search.snapshot.plant
    gpus, coolness, headroom = request.gpus, search.coolness, search.headroom
    saving = saving_of(request, plant.pools[pool][0], plant)
    watts = 0
    if full is not None:
        first = plant.bays[plant.bays_of_pool[pool][0]].first
        watts = taking_of(request, plant, first, gpus).loop_amount // gpus
    fitting, roomiest = 0, -1
    closed: set[int] = set()  # zones of which something is short
    for nodes in snapshot.nodes_by_free(pool)[gpus:]:
        position = 0
        while position < len(nodes):
            node = nodes[position]
            bay = plant.spots[node].bay
            # Nodes of one bay with as much free fit or fail alike, but for their own heat and CPUs.
            next_bay = bisect_left(nodes, plant.bays[bay].ends_before, position)
            if (bays is not None and bay not in bays) or plant.bays[bay].zone in closed:
                position = next_bay
                continue
            if full is not None and watts > 0:
                room = full.gpus(snapshot, bay, headroom, watts)
                if room < gpus:
                    if room > roomiest:
                        roomiest = room
                        search.passed_over[pool] = (room, node)
                    position = next_bay
                    continue
            if snapshot.cpus_free(node) < request.cpus:
                position += 1
                continue
            taking = taking_of(request, plant, node, gpus, search.power_fraction)
            warmth = coolness.share(node, taking.gpu_watts, taking.loop_amount) if gpus else 0.0
            amounts = (*taking.amounts, *saving) if saving else taking.amounts
            if search.weigh(((node, gpus),), amounts, warmth, cost):
                fitting += 1
                if fitting >= _ENOUGH:
                    return fitting
                position = next_bay
            else:
                position = next_bay if warmth is not None else position + 1
                rack = plant.bays[bay].rack_resource
                above = [headroom[one] < amount for one, amount in taking.amounts if one != rack]
                if full is not None and any(above):
                    closed.add(plant.bays[bay].zone)
    return fitting


def _weigh_gangs(search: _Search, pool: int, cost: float, *, quick: bool) -> int:
    """Weigh arrangements over several nodes; how many GPUs the best of them lacked.

    Where there cannot be one, `quick` leaves it at that; otherwise one is weighed that shows what is short.
    """
    snapshot, request = search.snapshot, search.request
    spread = Spread(
        snapshot=snapshot,
        thresholds=search.policy.thresholds,
        request=request,
        power_fraction=search.power_fraction,
        headroom=search.headroom,
    )
    least = spread.lacks(pool)
    if least > 0 and (quick or snapshot.free_in(pool) < request.gpus):
        return least
    lacking, tried = request.gpus, 0
    for nodes, missing in spread.places(pool, carried=least <= 0):
        lacking = min(lacking, missing)
        if not nodes:
            continue
        claim = claim_of(request, search.place(nodes), snapshot.plant, search.power_fraction)
        if search.weigh(nodes, claim.amounts, _warmth(search, claim), cost):
            tried += 1
            if tried >= _ENOUGH:
                break
    return least if least > 0 else lacking


def _warmth(search: _Search, claim: Claim) -> float | None:
    """How near its limit the hottest node of an arrangement would end; None where it may not stay below."""
    plant, amounts = search.snapshot.plant, dict(claim.amounts)
    warmth = 0.0
    for node, _ in claim.nodes:
        added = amounts.get(plant.spots[node].loop_resource, 0)
        share = search.coolness.share(node, claim.gpu_watts, added)
        if share is None:
            return None
        warmth = max(warmth, share)
    return warmth


def pools_for(
    plant: Plant,
    policy: Policy,
    request: JobRequest,
    sites: Collection[str] | None = None,
    power_fraction: float = 1.0,
) -> Sequence[tuple[float, int]]:
    """Pools that may take a job, cheapest first, with the least that an hour there scores."""
    weights, models = policy.weights, allowed_models(request, policy)
    found = _price_pools(
        plant,
        (weights.cost, weights.carbon),
        request.gpus,
        request.peak_watts,
        power_fraction,
        models,
        request.residency,
    )
    return found if sites is None else [(cost, pool) for cost, pool in found if plant.pools[pool][0] in sites]


@lru_cache(maxsize=4096)
def _price_pools(
    plant: Plant,
    weights: tuple[float, float],
    gpus: int,
    peak_watts: float | None,
    power_fraction: float,
    models: frozenset[str] | None,
    residency: tuple[str, ...],
) -> tuple[tuple[float, int], ...]:
    asked = JobRequest(job="", run="", gpus=gpus, peak_watts=peak_watts)
    found = []
    for pool, (site, device) in enumerate(plant.pools):
        if residency and plant.sites[site].region not in residency:
            continue
        if gpus and (not device or (models is not None and device not in models)):
            continue
        node = plant.bays[plant.bays_of_pool[pool][0]].first
        place = Place(site, ((plant.spots[node].node.name, gpus),))
        watts = peak_watts_on(asked, plant, node, gpus, power_fraction)
        usage = usage_of(float(gpus), watts / 1000.0, place, plant)
        found.append((weights[0] * usage.usd + weights[1] * usage.kg_co2e, pool))
    return tuple(sorted(found))


def may_ever_fit(empty: Snapshot, policy: Policy, request: JobRequest, tried: Choice) -> bool:
    """Whether a job that found no place in an empty facility might have one that was not tried.

    Only a gang has more arrangements than are tried, and only power and heat depend on which one it is.
    """
    short = {verdict.rule for verdict in tried.verdicts if not verdict.allows}
    if request.gpus < 2 or request.locality in ONE_NODE or not short <= _ARRANGED:
        return False
    headroom = headroom_of(empty, policy.thresholds)
    spread = Spread(snapshot=empty, thresholds=policy.thresholds, request=request, headroom=headroom)
    return spread.may_be_carried([pool for _, pool in pools_for(empty.plant, policy, request)], short)


def _usage(snapshot: Snapshot, request: JobRequest, place: Place, power_fraction: float) -> Usage:
    """What the job would use at a place, if it ran as long and as hard as it may."""
    hours = (request.max_duration_seconds or _COMPARED_SECONDS) / SECONDS_PER_HOUR
    peak_watts = _peak_watts(snapshot, request, place, power_fraction)
    return usage_of(request.gpus * hours, peak_watts * hours / 1000.0, place, snapshot.plant)


def _peak_watts(snapshot: Snapshot, request: JobRequest, place: Place, power_fraction: float) -> float:
    plant = snapshot.plant
    return sum(
        peak_watts_on(request, plant, plant.node_number[name], gpus, power_fraction)
        for name, gpus in place.nodes
    )


def transfer_usd(snapshot: Snapshot, from_site: str, to_site: str, size_bytes: float = 1e9) -> float:
    """What moving a checkpoint costs; a gigabyte where its size is not known yet."""
    link = snapshot.plant.links.get(frozenset((from_site, to_site)))
    return (link.usd_per_gigabyte if link else 0.0) * size_bytes / 1e9


def _distance(against: list[Verdict]) -> float:
    """How far a place is from fitting: shortfalls relative to what was asked, summed."""
    total = 0.0
    for verdict in against:
        short = verdict.short_by
        asked = next((value for name, value in verdict.numbers.items() if name.startswith("asked_")), 1.0)
        total += 1.0 if short is None else min(1e6, short[0] / max(asked, 1e-9))
    return total


def _judge_existence(
    snapshot: Snapshot, policy: Policy, request: JobRequest, sites: Collection[str] | None
) -> Verdict:
    """Why there was no place to judge: GPUs, CPUs, models, residency or locality."""
    plant = snapshot.plant
    pools = sorted(pool for _, pool in pools_for(plant, policy, request, sites))
    if not pools:
        models = allowed_models(request, policy)
        wanted = " or ".join(sorted(models)) if models else "any GPU"
        rule = "residency" if request.residency and not _regions(snapshot, request) else "instance.type"
        subject = ", ".join(request.residency) if rule == "residency" else wanted
        known = {device for _, device in plant.pools if device}
        regions = {site.region for site in plant.sites.values()}
        there = ", ".join(sorted(regions if rule == "residency" else known)) or "none"
        return Verdict.wait(rule, subject, change=f"this facility has {there}")
    if request.locality in ONE_NODE:
        at_hand = max(snapshot.most_free_in(pool) for pool in pools)
    else:
        at_hand = sum(snapshot.free_in(pool) for pool in pools)
    subject = ", ".join(dict.fromkeys(plant.pools[pool][0] for pool in pools))
    if at_hand >= request.gpus:
        rule = "cpus" if request.gpus == 0 else "locality"
        say = {"asked_cpus": request.cpus} if rule == "cpus" else {"asked_gpus": float(request.gpus)}
        return Verdict.wait(rule, subject, change="a job there ends", **say)
    return Verdict.wait(
        "gpus",
        subject,
        change="a job there ends",
        short_by_gpus=float(request.gpus - at_hand),
        asked_gpus=float(request.gpus),
        free_gpus=float(at_hand),
    )


def _regions(snapshot: Snapshot, request: JobRequest) -> list[str]:
    return [site.name for site in snapshot.plant.sites.values() if site.region in request.residency]
