"""Waiting heads: who could start at a site if there were watts for it, and under which caps would it?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

from wattline.policy.appetite import cap_fractions, declared_gpu_watts, is_rigid, menu_for
from wattline.policy.dividing import Menu, Sharer
from wattline.policy.placement import Choice, choose_place
from wattline.policy.pools import pools_for
from wattline.policy.power_bounds import Bound, shares_of
from wattline.spec.policy import Policy
from wattline.state import ONE_NODE, POWER, Claim, Job, Snapshot

# Watts are kept for this many at a time: more would start one after the other anyway.
_MOST_HEADS = 8
_MOST_OF_A_QUEUE = 4
# A job is tried at every third cap on the way down: sharing sets the one that is best soon after.
_EVERY = 3
_NOT_ABOUT_PLACE = ("rule.", "quota.", "budget.", "class.")


class Head(NamedTuple):
    job: Job
    pool: int
    sharer: Sharer
    woken_watts: float  # of one GPU: what its node takes more than asleep before it does any work


def find_heads(draft: Snapshot, policy: Policy, site: str, bounds: Sequence[Bound]) -> list[Head]:
    """Waiting jobs for which a site has the GPUs, the most urgent first."""
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
    for _, (_, _, job_id) in sorted(waiting):
        head = _head(draft, policy, site, bounds, draft.job(job_id), free)
        if head is not None:
            heads.append(head)
            free[head.pool] -= head.job.request.gpus
            if len(heads) == _MOST_HEADS:
                break
    return heads


def _head(
    draft: Snapshot, policy: Policy, site: str, bounds: Sequence[Bound], job: Job, free: dict[int, int]
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
        levels = menu.levels[-1:] if is_rigid(job, policy) else menu.levels
        raised = tuple([level._replace(watts=level.watts + woken) for level in levels])
        place = Claim(nodes=((node, request.gpus),), millicpus=0, amounts=(), gpu_watts=0.0)
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
    if is_rigid(job, policy) or (against and not any(rule in POWER for rule in against)):
        return choice, 1.0
    for fraction in start_fractions(draft, policy):
        capped = choose_place(
            draft, policy, job.remainder, power_fraction=fraction, near=near, only=only, explain=False
        )
        if capped.place is not None:
            return capped, fraction
    return choice, 1.0


def start_fractions(draft: Snapshot, policy: Policy) -> tuple[float, ...]:
    """Caps to try, the highest first."""
    devices = {cooling.device for cooling in draft.plant.coolings}
    lowest = min([cap_fractions(device, policy.power_sharing.least_cap) for device in devices], default=())
    return tuple(reversed(lowest[:-1:_EVERY])) or (1.0,)
