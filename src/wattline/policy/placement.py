"""Placement: among the places where a job fits, which is best; and where it fits nowhere, what is closest?"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from wattline.policy.gang import ONE_NODE, Spread
from wattline.policy.heat import is_at_limit, judge_heat
from wattline.policy.permission import allowed_models, judge_budget
from wattline.policy.power import judge_claim
from wattline.spec.policy import Policy, Thresholds, Weights
from wattline.state import (
    Claim,
    JobRequest,
    Place,
    ResourceKind,
    Snapshot,
    Usage,
    Verdict,
    claim_of,
    peak_watts_on,
    usage_of,
)
from wattline.units import SECONDS_PER_HOUR

# Placement looks at this many feasible places of a pool before it takes the best of them.
_ENOUGH = 8
# What another arrangement of the same GPUs may change.
_ARRANGED = frozenset({ResourceKind.RACK, ResourceKind.SUPPLY, ResourceKind.LOOP, "heat.throttle"})
# Where a job set no end, places are compared over this long.
_COMPARED_SECONDS = SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A place with its verdicts, or the verdicts of what came closest."""

    place: Place | None
    verdicts: tuple[Verdict, ...]
    usage: Usage = Usage()  # what the job would use there, if it ran as long as it may
    score: float = 0.0


def choose_place(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    *,
    power_fraction: float = 1.0,
    near: str | None = None,
    sites: Collection[str] | None = None,
) -> Choice:
    """The best feasible place, cheapest by the policy's weights; ties go to the first in the facility."""
    best: Choice | None = None
    closest: tuple[float, tuple[Verdict, ...]] | None = None
    for least, site, device in _cheapest_first(snapshot, policy, request, sites, power_fraction):
        if best is not None and best.score <= least:
            break  # what is left costs more, however roomy it is
        tried = 0
        for place in _candidates(snapshot, policy.thresholds, request, site, device, power_fraction):
            choice = _weigh(snapshot, policy, request, place, power_fraction, near)
            if choice.place is None:
                distance = _distance(choice.verdicts)
                if closest is None or distance < closest[0]:
                    closest = (distance, choice.verdicts)
                continue
            if best is None or choice.score < best.score:
                best = choice
            tried += 1
            if tried >= _ENOUGH:
                break
    if best is not None:
        return best
    if closest is not None:
        return Choice(place=None, verdicts=closest[1])
    return Choice(place=None, verdicts=(_judge_existence(snapshot, policy, request, sites),))


def _cheapest_first(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    sites: Collection[str] | None,
    power_fraction: float,
) -> list[tuple[float, str, str]]:
    """Pools with the least that any of their places scores: what the job costs there, all else perfect."""
    found = []
    for site, device in _pools(snapshot, policy, request, sites):
        node = snapshot.plant.spots[next(_nodes_of(snapshot, site, device))].node.name
        usage = _usage(snapshot, request, Place(site, ((node, request.gpus),)), power_fraction)
        found.append((_cost(policy.weights, usage), site, device))
    return sorted(found, key=lambda pool: pool[0])


def may_ever_fit(empty: Snapshot, policy: Policy, request: JobRequest, tried: Choice) -> bool:
    """Whether a job that found no place in an empty facility might have one that was not tried.

    Only a gang has more arrangements than are tried, and only power and heat depend on which one it is.
    """
    short = {verdict.rule for verdict in tried.verdicts if not verdict.allows}
    if request.gpus < 2 or request.locality in ONE_NODE or not short <= _ARRANGED:
        return False
    spread = Spread(snapshot=empty, thresholds=policy.thresholds, request=request)
    return spread.may_be_carried(_pools(empty, policy, request, None), short)


def _pools(
    snapshot: Snapshot, policy: Policy, request: JobRequest, sites: Collection[str] | None
) -> Iterator[tuple[str, str]]:
    models = allowed_models(request, policy)
    for site, device in snapshot.pools():
        if sites is not None and site not in sites:
            continue
        if request.residency and snapshot.plant.sites[site].region not in request.residency:
            continue
        if request.gpus and (not device or (models is not None and device not in models)):
            continue
        yield site, device


def _candidates(
    snapshot: Snapshot,
    thresholds: Thresholds,
    request: JobRequest,
    site: str,
    device: str,
    power_fraction: float,
) -> Iterator[Place]:
    """Places with the GPUs a job needs, tightest fit first; power and heat are judged after."""
    biggest = snapshot.biggest(site, device)
    if request.gpus <= biggest:
        seen: set[tuple[str, int, bool]] = set()
        for free in range(request.gpus, biggest + 1):
            for node in snapshot.nodes_with(site, device, free):
                spot = snapshot.plant.spots[node]
                if snapshot.cpus_free(node) < request.cpus:
                    continue
                # Nodes of one rack with as much free fit or fail alike, but for their own heat.
                alike = (spot.rack.name, free, is_at_limit(snapshot, request, node, thresholds))
                if alike in seen:
                    continue
                seen.add(alike)
                yield Place(site, ((spot.node.name, request.gpus),))
    if request.gpus > 1 and request.locality not in ONE_NODE:
        spread = Spread(
            snapshot=snapshot, thresholds=thresholds, request=request, power_fraction=power_fraction
        )
        yield from spread.places(site, device)


def _weigh(
    snapshot: Snapshot,
    policy: Policy,
    request: JobRequest,
    place: Place,
    power_fraction: float,
    near: str | None,
) -> Choice:
    """Judge one place by everything, then price it."""
    claim = claim_of(request, place, snapshot.plant, power_fraction)
    peak_watts = _peak_watts(snapshot, request, place, power_fraction)
    verdicts = judge_claim(snapshot, claim, policy.thresholds)
    verdicts += judge_heat(snapshot, request, claim, policy.thresholds)
    verdicts += judge_budget(snapshot, request, place, peak_watts, policy)
    if not all(verdict.allows for verdict in verdicts):
        return Choice(place=None, verdicts=tuple(verdicts))
    usage = _usage(snapshot, request, place, power_fraction)
    score = _score(snapshot, policy.weights, verdicts, claim, usage)
    if near is not None and place.site != near:
        score += policy.weights.cost * transfer_usd(snapshot, near, place.site) + 1e-6
    return Choice(place=place, verdicts=tuple(verdicts), usage=usage, score=score)


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


def _cost(weights: Weights, usage: Usage) -> float:
    return weights.cost * usage.usd + weights.carbon * usage.kg_co2e


def transfer_usd(snapshot: Snapshot, from_site: str, to_site: str, size_bytes: float = 1e9) -> float:
    """What moving a checkpoint costs; a gigabyte where its size is not known yet."""
    link = snapshot.plant.links.get(frozenset((from_site, to_site)))
    return (link.usd_per_gigabyte if link else 0.0) * size_bytes / 1e9


def _score(
    snapshot: Snapshot, weights: Weights, verdicts: list[Verdict], claim: Claim, usage: Usage
) -> float:
    """Dollars and kilograms, plus mild preferences for cool, roomy and tightly packed places."""
    warmth = tightness = 0.0
    for verdict in verdicts:
        predicted = verdict.numbers.get("predicted_celsius")
        if predicted is not None:
            warmth = max(warmth, predicted / verdict.numbers["limit_celsius"])
        left = verdict.numbers.get("left_watts")
        if left is not None:
            tightness = max(tightness, 1.0 / (1.0 + left / 1000.0))
    leftover = sum(snapshot.gpus_free(node) - gpus for node, gpus in claim.nodes)
    return (
        _cost(weights, usage)
        + weights.heat * warmth
        + weights.power * tightness
        + weights.fragmentation * leftover / (1 + leftover)
    )


def _distance(verdicts: tuple[Verdict, ...]) -> float:
    """How far a place is from fitting: shortfalls relative to what was asked, summed."""
    total = 0.0
    for verdict in verdicts:
        if verdict.allows:
            continue
        short = verdict.short_by
        asked = next((value for name, value in verdict.numbers.items() if name.startswith("asked_")), 1.0)
        total += 1.0 if short is None else min(1e6, short[0] / max(asked, 1e-9))
    return total


def _judge_existence(
    snapshot: Snapshot, policy: Policy, request: JobRequest, sites: Collection[str] | None
) -> Verdict:
    """Why there was no place to judge: GPUs, CPUs, models, residency or locality."""
    pools = list(_pools(snapshot, policy, request, sites))
    if not pools:
        models = allowed_models(request, policy)
        wanted = " or ".join(sorted(models)) if models else "any GPU"
        rule = "residency" if request.residency and not _regions(snapshot, request) else "instance.type"
        subject = ", ".join(request.residency) if rule == "residency" else wanted
        known = {device for _, device in snapshot.pools() if device}
        regions = {site.region for site in snapshot.plant.sites.values()}
        there = ", ".join(sorted(regions if rule == "residency" else known)) or "none"
        return Verdict.wait(rule, subject, change=f"this facility has {there}")
    free = [snapshot.free_in(site, device) for site, device in pools]
    one_node = request.locality in ONE_NODE
    at_hand = max(most for most, _ in free) if one_node else sum(all_of_it for _, all_of_it in free)
    subject = ", ".join(dict.fromkeys(site for site, _ in pools))
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


def _nodes_of(snapshot: Snapshot, site: str, device: str) -> Iterator[int]:
    for node in snapshot.plant.nodes_of_site[site]:
        held = snapshot.plant.spots[node].node.device
        if (held.name if held else "") == device:
            yield node


def _regions(snapshot: Snapshot, request: JobRequest) -> list[str]:
    return [site.name for site in snapshot.plant.sites.values() if site.region in request.residency]
