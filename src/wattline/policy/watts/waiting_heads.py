"""Waiting heads: who could start at a site if there were watts for it, and under which caps would it?"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

from wattline.policy.giving_way.capping import capping_sites, may_cap
from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.placement import Choice, choose_place
from wattline.policy.watts.appetite import cap_fractions, declared_gpu_watts, is_rigid, menu_for
from wattline.policy.watts.dividing import Menu, Sharer
from wattline.policy.watts.power_bounds import Bound, shares_of
from wattline.spec.policy import Policy
from wattline.state import ONE_NODE, POWER, Claim, Job, JobRequest, ResourceKind, Snapshot

# Watts are kept for this many at a time: more would start one after the other anyway.
_MOST_HEADS = 8
_MOST_OF_A_QUEUE = 4
# A job is tried at every third cap on the way down: sharing sets the one that is best soon after.
_EVERY = 3
# What a cap makes less of.
_WATTS = POWER | {ResourceKind.LOOP}
_NOT_ABOUT_PLACE = ("rule.", "quota.", "budget.", "class.")


class Head(NamedTuple):
    job: Job
    pool: int
    sharer: Sharer
    woken_watts: float  # of one GPU: what its node takes more than asleep before it does any work


def find_heads(
    draft: Snapshot, policy: Policy, site: str, bounds: Sequence[Bound], left_watts: Sequence[float]
) -> list[Head]:
    """Waiting jobs for which a site has the GPUs, the most urgent first, each where most watts are left."""
    if not draft.is_anybody_waiting:
        return []
    free = {pool: draft.free_in(pool) for pool in draft.plant.pools_of_site[draft.plant.site_numbers[site]]}
    if not any(free.values()):
        return []
    waiting = []
    for _, queue in draft.queues:
        first = draft.jobs[queue[0][2]]
        known = policy.classes.get(first.request.scheduling_class)
        rank = -(known.priority if known else 0.0)
        waiting += [(rank, key) for key in islice(queue, _MOST_OF_A_QUEUE)]
    heads: list[Head] = []
    room = _Room(draft, bounds, left_watts)
    for _, (_, _, job_id) in sorted(waiting):
        head = _head(draft, policy, site, bounds, draft.job(job_id), free, room)
        if head is not None:
            heads.append(head)
            free[head.pool] -= head.job.request.gpus
            if len(heads) == _MOST_HEADS:
                break
    return heads


class _Room:
    """What racks and their nodes have left for those who wait, as one after the other is laid there."""

    def __init__(self, draft: Snapshot, bounds: Sequence[Bound], left_watts: Sequence[float]) -> None:
        self._draft = draft
        self._left = {
            bound.resource: left
            for bound, left in zip(bounds, left_watts, strict=True)
            if bound.resource is not None
        }
        self._taken: dict[int, int] = {}

    def take(self, pool: int, request: JobRequest, watts_each: float) -> tuple[tuple[int, int], ...] | None:
        """Nodes that have the GPUs, on racks with most watts left for each; taken from then on."""
        plant, draft = self._draft.plant, self._draft
        by_free = draft.nodes_by_free(pool)
        is_single = request.locality in ONE_NODE or request.gpus <= plant.biggest_of_pool[pool]
        spread: list[tuple[float, int, int]] = []
        for free in range(len(by_free) - 1, 0, -1):
            for node in by_free[free]:
                there = free - self._taken.get(node, 0)
                if there >= (request.gpus if is_single else 1):
                    left = self._left.get(plant.spots[node].power[0][0], math.inf)
                    spread.append((-left, node, there))
        nodes: list[tuple[int, int]] = []
        missing = request.gpus
        for _, node, there in sorted(spread):
            nodes.append((node, min(there, missing)))
            missing -= nodes[-1][1]
            if not missing:
                break
        if missing:
            return None
        for node, gpus in nodes:
            self._taken[node] = self._taken.get(node, 0) + gpus
            rack = plant.spots[node].power[0][0]
            if rack in self._left:
                self._left[rack] -= gpus * watts_each
        return tuple(nodes)


def _head(
    draft: Snapshot,
    policy: Policy,
    site: str,
    bounds: Sequence[Bound],
    job: Job,
    free: dict[int, int],
    room: _Room,
) -> Head | None:
    request, plant = job.request, draft.plant
    told = [verdict.rule for verdict in job.verdicts if not verdict.allows]
    if not request.gpus or any(rule.startswith(_NOT_ABOUT_PLACE) for rule in told):
        return None
    for _, pool in pools_for(plant, policy, request, [site]):
        fits = free[pool] >= request.gpus and (
            request.locality not in ONE_NODE or draft.most_free_in(pool) >= request.gpus
        )
        node = plant.bays[plant.bays_of_pool[pool][0]].first
        spot = plant.spots[node]
        if not fits or spot.node.device is None:
            continue
        declared = declared_gpu_watts(request, spot.node.device)
        menu = menu_for(policy, spot.node.device, request, declared, 0.0)
        woken = (1.0 - policy.power_sharing.asleep) * spot.node.idle_watts / spot.node.gpus
        is_fixed = is_rigid(job, policy) or not may_cap(plant, site)
        levels = menu.levels[-1:] if is_fixed else menu.levels
        raised = tuple([level._replace(watts=level.watts + woken) for level in levels])
        nodes = room.take(pool, request, max(0.0, declared - spot.node.device.idle_watts))
        if nodes is None:
            continue
        place = Claim(nodes=nodes, millicpus=0, amounts=(), gpu_watts=0.0)
        sharer = Sharer(request.gpus, Menu(raised, 0.0), shares_of(plant, place, bounds))
        return Head(job, pool, sharer, woken)
    return None


def start_on_cap(
    draft: Snapshot,
    policy: Policy,
    job: Job,
    choice: Choice,
    near: str | None,
    only: Collection[int] | None,
) -> tuple[Choice, float]:
    """A place under a cap for a job that found none without, and the cap; else what it was told."""
    against = [verdict.rule for verdict in choice.verdicts if not verdict.allows]
    if is_rigid(job, policy) or (against and not any(rule in _WATTS for rule in against)):
        return choice, 1.0
    sites = capping_sites(draft.plant)
    for fraction in start_fractions(draft, policy) if sites != [] else ():
        capped = choose_place(
            draft,
            policy,
            job.remainder,
            power_fraction=fraction,
            near=near,
            sites=sites,
            only=only,
            explain=False,
        )
        if capped.place is not None:
            return capped, fraction
    return choice, 1.0


def start_fractions(draft: Snapshot, policy: Policy) -> tuple[float, ...]:
    """Caps to try, the highest first."""
    devices = {cooling.device for cooling in draft.plant.coolings}
    lowest = min([cap_fractions(device, policy.power_sharing.least_cap) for device in devices], default=())
    return tuple(reversed(lowest[:-1:_EVERY])) or (1.0,)
