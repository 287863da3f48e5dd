"""Waking: which sleeping nodes would give a job a place, and does everything above them carry that?

Just enough of them, and only where what is above them was read lately: a margin that nobody has seen is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from wattline.policy.headroom.heat import judge_heat
from wattline.policy.headroom.power import UNITS, headroom_of
from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.placement import choose_place
from wattline.spec.pipeline import Locality
from wattline.spec.policy import Policy
from wattline.state import ONE_NODE, JobRequest, Place, Plant, Snapshot, Verdict, claim_of
from wattline.state.resting import saved_amounts

MARGIN, WAKING, FAILED = "scaling.margin", "scaling.waking", "scaling.failed"
# So many racks of a pool are tried, the roomiest first, and so many more nodes than the fewest.
_MOST_RACKS = 8
_MOST_MORE = 8
_DOMAINS = frozenset({Locality.RACK, Locality.SWITCH, Locality.ROW})


class Roused(NamedTuple):
    place: Place
    nodes: tuple[int, ...]  # of the place, those that have to wake


def find_sleepers(draft: Snapshot, policy: Policy, pool: int) -> list[int]:
    """Nodes of a pool that sleep, have power, and did not just fail to wake; by number."""
    resting = draft.resting
    asleep = [node for node in resting.of_pool[pool] if not draft.is_off(node) and not draft.is_roused(node)]
    return sorted([node for node in asleep if retry_at(draft, policy, node) <= draft.at])


def retry_at(draft: Snapshot, policy: Policy, node: int) -> float:
    """When a node may be asked to wake."""
    assert policy.scaling is not None
    failed_at = draft.resting.rests[node].failed_at
    return -math.inf if failed_at is None else failed_at + policy.scaling.retry_after


def rouse_for(future: Snapshot, policy: Policy, request: JobRequest, near: str | None) -> Roused | None:
    """The fewest sleeping nodes with which a job has a place, in the cheapest pool that has them."""
    for _, pool in pools_for(future.plant, policy, request):
        for nodes in _lots(future, policy, request, pool):
            trial = future.copy()
            for node in nodes:
                trial.rouse(node)
            place = choose_place(trial, policy, request, near=near, only=[pool], explain=False).place
            if place is not None:
                numbers = [future.plant.node_number[name] for name, _ in place.nodes]
                woken = tuple([node for node in numbers if node in nodes])
                if woken:
                    return Roused(place, woken)
    return None


def _lots(future: Snapshot, policy: Policy, request: JobRequest, pool: int) -> Iterator[Sequence[int]]:
    """Sets of sleeping nodes to try: one of each rack, or a few that are near each other."""
    max_age, spots = policy.thresholds.reading_max_age, future.plant.spots
    asleep = [n for n in find_sleepers(future, policy, pool) if future.is_confirmed(n, max_age)]
    if not asleep:
        return
    biggest, headroom = future.plant.biggest_of_pool[pool], headroom_of(future, policy.thresholds)
    if request.gpus <= biggest:
        first: dict[int, int] = {}
        for node in asleep:
            if spots[node].node.gpus >= request.gpus:
                first.setdefault(spots[node].bay, node)
        racks = sorted(first.values(), key=lambda node: (-headroom[spots[node].power[0][0]], node))
        yield from [(node,) for node in racks[:_MOST_RACKS]]
    elif request.locality not in ONE_NODE:
        for there in _near(future.plant, request, asleep):
            free = future.free_in(pool) if request.locality not in _DOMAINS else 0
            fewest = max(1, math.ceil((request.gpus - free) / biggest))
            for number in range(fewest, min(fewest + _MOST_MORE, len(there)) + 1):
                yield there[:number]


def _near(plant: Plant, request: JobRequest, asleep: Sequence[int]) -> list[list[int]]:
    """Sleeping nodes by how near each other they must be, most of them first."""
    found: dict[str, list[int]] = {}
    for node in asleep:
        rack = plant.spots[node].rack
        names = {Locality.RACK: rack.name, Locality.SWITCH: rack.switch, Locality.ROW: rack.row}
        found.setdefault(names.get(request.locality, ""), []).append(node)
    by_size = sorted(found.values(), key=lambda nodes: (-len(nodes), nodes[0]))
    return by_size[:_MOST_RACKS]


def carries_idle(future: Snapshot, policy: Policy, node: int) -> bool:
    """Whether a node may wake for nobody yet: all above it was read, and has its idle watts left."""
    if not future.is_confirmed(node, policy.thresholds.reading_max_age):
        return False
    headroom = headroom_of(future, policy.thresholds)
    return all(headroom[resource] >= watts for resource, watts in saved_amounts(future.plant, node))


def judge_margin(future: Snapshot, policy: Policy, request: JobRequest) -> Verdict | None:
    """What keeps sleeping nodes from waking for a job; None where none of them would help it."""
    failed: Verdict | None = None
    for _, pool in pools_for(future.plant, policy, request):
        biggest = max(1, future.plant.biggest_of_pool[pool])
        if request.gpus > biggest and request.locality in ONE_NODE:
            continue
        wanted = max(1, math.ceil(request.gpus / biggest))
        asleep = find_sleepers(future, policy, pool)
        if len(asleep) >= wanted or (asleep and future.free_in(pool) >= request.gpus - len(asleep) * biggest):
            return _judge_nodes(future, policy, request, asleep[:wanted])
        failed = failed or _judge_failed(future, policy, pool)
    return failed


def _judge_nodes(future: Snapshot, policy: Policy, request: JobRequest, nodes: Sequence[int]) -> Verdict:
    plant, thresholds = future.plant, policy.thresholds
    first = plant.spots[nodes[0]]
    say = f"to wake {first.node.name} and start there"
    for node in nodes:
        if not future.is_confirmed(node, thresholds.reading_max_age):
            verdict = Verdict.wait(MARGIN, plant.spots[node].rack.name, "its meters are read again")
            return msgspec.structs.replace(verdict, say=f"{say}: what is left there was not read lately")
    asked = _asked_amounts(plant, request, nodes)
    headroom = headroom_of(future, thresholds)
    short = {one: amount - headroom[one] for one, amount in asked.items() if amount > headroom[one]}
    if short:
        worst = max(short, key=lambda one: (short[one] / asked[one], -one))
        unit, name = UNITS[plant.kinds[worst]], plant.resources[worst].name
        numbers = {
            f"short_by_{unit}": float(short[worst]),
            f"asked_{unit}": float(asked[worst]),
            f"left_{unit}": float(headroom[worst]),
        }
        change = f"{name} frees {short[worst]:.0f} {unit}"
        return msgspec.structs.replace(Verdict.wait(MARGIN, name, change, **numbers), say=say)
    claim = claim_of(request, _place(plant, request, nodes), plant)
    hot = [verdict for verdict in judge_heat(future, request, claim, thresholds) if not verdict.allows]
    if hot:
        return msgspec.structs.replace(hot[0], rule=MARGIN, say=say)
    verdict = Verdict.wait(MARGIN, first.rack.name, "more is free where it sleeps")
    return msgspec.structs.replace(verdict, say=f"{say}: not all that it asks for is there")


def _asked_amounts(plant: Plant, request: JobRequest, nodes: Sequence[int]) -> dict[int, int]:
    """What waking nodes and starting there take together of everything above."""
    asked = dict(claim_of(request, _place(plant, request, nodes), plant).amounts)
    for node in nodes:
        for resource, watts in saved_amounts(plant, node):
            asked[resource] = asked.get(resource, 0) + watts
    return asked


def _place(plant: Plant, request: JobRequest, nodes: Sequence[int]) -> Place:
    left, taken = request.gpus, []
    for node in nodes:
        gpus = min(left, plant.spots[node].node.gpus)
        taken.append((plant.spots[node].node.name, gpus))
        left -= gpus
    return Place(plant.spots[nodes[0]].site.name, tuple(taken))


def _judge_failed(future: Snapshot, policy: Policy, pool: int) -> Verdict | None:
    """All that sleep there failed to wake: say when the first is asked again."""
    again = [
        (retry_at(future, policy, node), node)
        for node in future.resting.of_pool[pool]
        if not future.is_off(node) and retry_at(future, policy, node) > future.at
    ]
    if not again:
        return None
    at, node = min(again)
    name = future.plant.spots[node].node.name
    verdict = Verdict.wait(FAILED, name, f"{name} wakes", again_in_seconds=float(round(at - future.at)))
    return msgspec.structs.replace(verdict, say="it did not wake")
