"""Attention: which running jobs need a look now? Cost follows what changed, not what exists.

A job is looked at when it changed, when it stands on a rung or was pressed last time, or when something near
it was read that could press it. Where a loop is calm, nothing on it can be: even at more than their limit its
devices would stay below where they throttle.
"""

from __future__ import annotations

import math
from itertools import islice

from wattline.policy.heat import predict_die_resting, predict_die_steady
from wattline.policy.power import usable
from wattline.spec.policy import Thresholds
from wattline.state import Snapshot

# Real draw exceeds the rating now and then; nothing is known to exceed it by this much for long.
_BEYOND_LIMIT = 1.25


def choose_attention(snapshot: Snapshot, thresholds: Thresholds) -> list[str]:
    """Jobs to judge for pressure, by name; all others are as they were."""
    max_age = thresholds.reading_max_age
    found = set(snapshot.restless)
    calm: dict[int, bool] = {}

    def is_calm(loop: int) -> bool:
        if loop not in calm:
            calm[loop] = _is_calm(snapshot, loop, max_age)
        return calm[loop]

    for resource in {*snapshot.touched_resources, *snapshot.unread_resources(max_age)}:
        over = snapshot.drawn(resource, max_age) > usable(snapshot, resource, thresholds)
        if over or (resource in snapshot.plant.loop_of_resource and not is_calm(resource)):
            found.update(snapshot.jobs_on(resource))
    for node in {*snapshot.touched_nodes, *snapshot.unread_nodes(max_age)}:
        jobs = snapshot.jobs_at(node)
        if jobs and (
            _is_hot(snapshot, node, max_age) or not is_calm(snapshot.plant.spots[node].loop_resource)
        ):
            found.update(jobs)
    return sorted(found)


def next_unread_at(snapshot: Snapshot, max_age_seconds: float) -> float | None:
    """The first moment when the oldest reading of a GPU that is still believed no longer will be."""
    ends = []
    for column in (snapshot.conditions.node_celsius, snapshot.conditions.node_gpu_watts):
        fresh = (read_at for _, read_at in column.values() if snapshot.at - read_at <= max_age_seconds)
        ends += [math.nextafter(read_at + max_age_seconds, math.inf) for read_at in islice(fresh, 1)]
    return min(ends, default=None)


def _is_calm(snapshot: Snapshot, loop: int, max_age_seconds: float) -> bool:
    drawn = snapshot.drawn(loop, max_age_seconds)
    site = snapshot.plant.sites[snapshot.plant.site_of_resource[loop]]
    for device in snapshot.plant.devices_on_loop.get(loop, ()):
        steady = predict_die_steady(
            snapshot, loop, device, site.thermal_time_scale, _BEYOND_LIMIT * device.limit_watts, drawn
        )
        if steady is None or steady > device.throttle_celsius:
            return False
        # A node that nobody reads counts as resting on its coolant, which may be warmer than it will stay.
        resting = predict_die_resting(snapshot, loop, device, site.thermal_time_scale)
        if resting >= device.throttle_celsius:
            return False
    return True


def _is_hot(snapshot: Snapshot, node: int, max_age_seconds: float) -> bool:
    device = snapshot.plant.spots[node].node.device
    celsius, watts = snapshot.conditions.node_celsius.get(node), snapshot.conditions.node_gpu_watts.get(node)
    if device is None:
        return False
    hot = celsius is not None and (
        celsius[0] >= device.throttle_celsius or snapshot.at - celsius[1] > max_age_seconds
    )
    return hot or (watts is not None and watts[0] > _BEYOND_LIMIT * device.limit_watts)
