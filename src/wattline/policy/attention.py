"""Attention: which running jobs need a look now? Cost follows what changed, not what exists.

A job is looked at when it changed, when it stands on a rung or was pressed last time, or when something near
it was read that could press it. Where a loop is calm, nothing on it can be: even at more than their limit its
devices would stay below where they throttle.
"""

from __future__ import annotations

import math
from itertools import islice

from wattline.policy.heat import BEYOND_LIMIT, predict_die_now, predict_die_resting, predict_die_steady
from wattline.policy.power import usable
from wattline.spec.policy import Thresholds
from wattline.state import JobState, Snapshot


def choose_attention(snapshot: Snapshot, thresholds: Thresholds) -> list[str]:
    """Jobs to judge for pressure, by name; all others are as they were."""
    max_age = thresholds.reading_max_age
    found = set(snapshot.restless)
    calm: dict[int, bool] = {}

    def is_calm(loop: int) -> bool:
        if loop not in calm:
            calm[loop] = _is_calm(snapshot, loop, max_age)
        return calm[loop]

    def is_pressed(resource: int) -> bool:
        over = snapshot.drawn(resource, max_age) > usable(snapshot, resource, thresholds)
        return over or (resource in snapshot.plant.loop_of_resource and not is_calm(resource))

    for resource in {*snapshot.touched_resources, *snapshot.unread_resources(max_age)}:
        if snapshot.jobs_on(resource) and is_pressed(resource):
            found.update(snapshot.jobs_on(resource))
    for node in {*snapshot.touched_nodes, *snapshot.unread_nodes(max_age)}:
        jobs = snapshot.jobs_at(node)
        if jobs and (
            _is_hot(snapshot, node, thresholds) or not is_calm(snapshot.plant.spots[node].loop_resource)
        ):
            found.update(jobs)
    for job_id in snapshot.changed:
        job, claim = snapshot.job(job_id), snapshot.claim(job_id)
        if claim is None or job_id in found or job.state is not JobState.RUNNING:
            continue
        if (
            job.rung >= 0
            or any(is_pressed(resource) for resource, _ in claim.amounts)
            or any(_is_hot(snapshot, node, thresholds) for node, _ in claim.nodes)
        ):
            found.add(job_id)
    return sorted(found)


def next_unread_at(snapshot: Snapshot, max_age_seconds: float) -> float | None:
    """The first moment when a reading of a GPU that is still believed no longer will be."""
    heard = [at for at in snapshot.heard_at if snapshot.at - at <= max_age_seconds]
    if not heard:  # where a site vouches for its meters, it falls silent before they do
        for column in (snapshot.conditions.node_celsius, snapshot.conditions.node_gpu_watts):
            fresh = (read_at for _, read_at in column.values() if snapshot.at - read_at <= max_age_seconds)
            heard += islice(fresh, 1)
    return math.nextafter(min(heard) + max_age_seconds, math.inf) if heard else None


def _is_calm(snapshot: Snapshot, loop: int, max_age_seconds: float) -> bool:
    drawn = snapshot.drawn(loop, max_age_seconds)
    for cooling in snapshot.plant.coolings_on_loop.get(loop, ()):
        device = snapshot.plant.coolings[cooling].device
        steady = predict_die_steady(snapshot, cooling, BEYOND_LIMIT * device.limit_watts, drawn)
        if steady is None or steady > device.throttle_celsius:
            return False
        # A node that nobody reads counts as resting on its coolant, which may be warmer than it will stay.
        if predict_die_resting(snapshot, cooling) >= device.throttle_celsius:
            return False
    return True


def _is_hot(snapshot: Snapshot, node: int, thresholds: Thresholds) -> bool:
    device = snapshot.plant.spots[node].node.device
    if device is None:
        return False
    watts, limit = snapshot.conditions.node_gpu_watts.get(node), device.throttle_celsius
    if watts is not None and watts[0] > BEYOND_LIMIT * device.limit_watts:
        return True
    read = node in snapshot.conditions.node_celsius
    return read and predict_die_now(snapshot, node, limit, thresholds) >= limit
