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
    look = _Look(snapshot, thresholds)
    max_age = thresholds.reading_max_age
    found = set(snapshot.restless)
    for resource in look.at_risk({*snapshot.touched_resources, *snapshot.unread_resources(max_age)}):
        if snapshot.jobs_on(resource) and look.is_pressed(resource):
            found.update(snapshot.jobs_on(resource))
    for node in {*snapshot.touched_nodes, *snapshot.unread_nodes(max_age)}:
        jobs = snapshot.jobs_at(node)
        if jobs and look.is_warm(node):
            found.update(jobs)
    for job_id in snapshot.changed:
        job, claim = snapshot.job(job_id), snapshot.claim(job_id)
        if claim is None or job_id in found or job.state is not JobState.RUNNING:
            continue
        if (
            job.rung >= 0
            or any(look.is_warm(node) for node, _ in claim.nodes)
            or any(map(look.is_pressed, look.at_risk({resource for resource, _ in claim.amounts})))
        ):
            found.add(job_id)
    return sorted(found)


class _Look:
    """One look around: each loop is judged once."""

    __slots__ = ("_calm", "_over", "_snapshot", "_thresholds")

    def __init__(self, snapshot: Snapshot, thresholds: Thresholds) -> None:
        self._snapshot, self._thresholds = snapshot, thresholds
        self._calm: dict[int, bool] = {}
        self._over = snapshot.may_be_over(max(thresholds.power_margin, thresholds.cooling_margin))

    def at_risk(self, resources: set[int]) -> set[int]:
        """Those that may press somebody: loops, what is nearly full, and what nobody reads."""
        if self._over is None:
            return resources
        snapshot, max_age = self._snapshot, self._thresholds.reading_max_age
        unread = {one for one in resources if not snapshot.is_read(one, max_age)}
        return (resources & self._over) | (resources & snapshot.plant.loop_of_resource.keys()) | unread

    def is_pressed(self, resource: int) -> bool:
        snapshot, thresholds = self._snapshot, self._thresholds
        drawn = snapshot.drawn(resource, thresholds.reading_max_age)
        if drawn > usable(snapshot, resource, thresholds):
            return True
        return resource in snapshot.plant.loop_of_resource and not self.is_calm(resource)

    def is_calm(self, loop: int) -> bool:
        if loop not in self._calm:
            self._calm[loop] = _is_calm(self._snapshot, loop, self._thresholds.reading_max_age)
        return self._calm[loop]

    def is_warm(self, node: int) -> bool:
        """Whether a node is hot, or on a loop where it may become so."""
        loop = self._snapshot.plant.spots[node].loop_resource
        return not self.is_calm(loop) or _is_hot(self._snapshot, node, self._thresholds)


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
