"""Reservations: which place is kept for a job that others overtake, and from when is it free?

A place is found where it would be if some of those who run had left: those who leave soonest, or those who
are asked to. What is free of it is kept; the rest follows as they leave. Nobody who would still be there when
the reservation is due is put into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import msgspec

from wattline.policy.permitting.classes import judge_class
from wattline.policy.permitting.permission import judge_permission
from wattline.policy.permitting.pools import pools_for
from wattline.policy.placing.placement import choose_place
from wattline.spec.policy import Policy
from wattline.state import (
    Claim,
    Job,
    Place,
    Reservation,
    Snapshot,
    claim_of,
    seconds_left,
)
from wattline.units import format_seconds

# Of those who might leave at most so many are looked at, the first in line.
_MOST_LEAVERS = 4096
_MOST_SPARED = 32


class Opening(msgspec.Struct, frozen=True):
    """A place, and who must have left before it is free."""

    place: Place
    leavers: tuple[Job, ...]


def may_run(draft: Snapshot, policy: Policy, job: Job) -> bool:
    """Whether only a place is missing."""
    permission = judge_permission(draft, job.remainder, policy)
    permission += judge_class(draft, policy, job.remainder)
    return bool(job.request.gpus) and all(verdict.allows for verdict in permission)


def find_opening(
    draft: Snapshot, policy: Policy, job: Job, leavers: Sequence[Job], near: str | None
) -> Opening | None:
    """The place that opens first when these leave in this order; None where all of them are not enough."""
    pools = {pool for _, pool in pools_for(draft.plant, policy, job.remainder)}
    pool_of = draft.plant.pool_of
    in_pools = (one for one in leavers if one.place is not None and pool_of(one.place.nodes[0][0]) in pools)
    there, first = islice(in_pools, _MOST_LEAVERS), list[Job]()  # of thousands most places need a few

    def place_without(gone: Sequence[Job]) -> Place | None:
        after = draft.copy()
        for one in gone:
            after.lay_end(one)
        return choose_place(after, policy, job.remainder, near=near, explain=False).place

    too_few, enough, place = 0, 1, None  # twice as many each time, then back
    while place is None:
        first += islice(there, enough - len(first))
        enough = min(enough, len(first))
        if enough == too_few:  # all of them are not enough
            return None
        place = place_without(first[:enough])
        if place is None:
            too_few, enough = enough, 2 * enough
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        found = place_without(first[:middle])
        if found is None:
            too_few = middle
        else:
            enough, place = middle, found
    # Who does not stand in the way of that place may stay, if it is free without it.
    in_the_way = [one for one in first[:enough] if _meets(one, place)]
    needed = first[:enough] if place_without(in_the_way) is None else in_the_way
    for one in needed[:_MOST_SPARED]:
        fewer = [other for other in needed if other is not one]
        if fewer and place_without(fewer) is not None:
            needed = fewer
    found = place_without(needed)
    return None if found is None else Opening(found, tuple(needed))


def _meets(job: Job, place: Place) -> bool:
    wanted = {node for node, _ in place.nodes}
    return job.place is not None and any(node in wanted for node, _ in job.place.nodes)


def expected_end(job: Job, at: float) -> float:
    """When a job will have left: as it declared, else it is expected to go on as long as it has so far."""
    began_at = job.since if job.started_at is None else job.started_at
    left = seconds_left(job)
    return began_at + left if left is not None else at + max(60.0, at - began_at)


def declared_end(jobs: Sequence[Job]) -> float | None:
    """By when all of them will have left; None where one has set no end."""
    ends = []
    for job in jobs:
        left = seconds_left(job)
        if left is None:
            return None
        ends.append((job.since if job.started_at is None else job.started_at) + left)
    return max(ends, default=0.0)


def reserve_place(draft: Snapshot, policy: Policy, job: Job, near: str | None) -> Reservation | None:
    """Keep the place for a job that opens first by itself; None where it need not wait, or none ever will."""
    if choose_place(draft, policy, job.remainder, near=near, explain=False).place is not None:
        return None
    if policy.resizing is not None and job.request.elastic is not None:
        least = job.narrowest.remainder
        if choose_place(draft, policy, least, near=near, explain=False).place is not None:
            return None
    at, altered, jobs = draft.at, draft.altered, draft.jobs
    holding = [(job_id, altered.get(job_id) or jobs[job_id]) for job_id in draft.holding]
    ends = sorted([(expected_end(one, at), job_id, one) for job_id, one in holding])
    opening = find_opening(draft, policy, job, [one for _, _, one in ends], near)
    if opening is None:
        return None
    starts_at = declared_end(opening.leavers)
    return Reservation(
        job=job.id,
        place=opening.place,
        made_at=draft.at,
        starts_at=None if starts_at is None else max(starts_at, draft.at),
        because=f"overtaken for longer than {format_seconds(policy.sharing.patience or 0.0)}",
    )


def keep_free(draft: Snapshot, reservation: Reservation) -> Claim | None:
    """Lay over what is free of a reserved place, so that nobody else takes it; None where all is taken."""
    request, plant = draft.jobs[reservation.job].remainder, draft.plant
    there = [
        (node, min(gpus, draft.gpus_free(plant.node_number[node]))) for node, gpus in reservation.place.nodes
    ]
    free = [(node, gpus) for node, gpus in there if gpus > 0]
    gpus = sum(number for _, number in free)
    if not gpus:
        return None
    watts = None if request.peak_watts is None else request.peak_watts * gpus / request.gpus
    part = msgspec.structs.replace(
        request, gpus=gpus, peak_watts=watts, cpus=0.0, checkpoint_bits_per_second=0.0, replicate_to=()
    )
    claim = claim_of(part, Place(reservation.place.site, tuple(free)), plant)
    draft.keep(claim)
    return claim


def is_lost(draft: Snapshot, policy: Policy, reservation: Reservation) -> bool:
    """Whether a place cannot be had any more, or those who should have left it have not."""
    if any(draft.is_down(draft.plant.node_number[node]) for node, _ in reservation.place.nodes):
        return True
    ends_at = lost_at(reservation, policy)
    return ends_at is not None and draft.at >= ends_at


def lost_at(reservation: Reservation, policy: Policy) -> float | None:
    """When a reservation ends that was not kept; None where nobody said when it would be."""
    late_seconds = max(1.0, policy.thresholds.acknowledge_within)
    return None if reservation.starts_at is None else reservation.starts_at + late_seconds
