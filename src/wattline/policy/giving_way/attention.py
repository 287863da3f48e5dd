"""Attention: which running jobs need a look now? Cost follows what changed, not what exists.

A job is looked at when it changed, when it stands on a rung or was pressed last time, or when something near
it was read that could press it. Where a loop is calm, nothing on it can be: even at more than their limit its
devices would stay below where they throttle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice

from wattline.policy.headroom.heat import (
    BEYOND_LIMIT,
    predict_die_now,
    predict_die_steady,
    predict_resting_kelvin,
)
from wattline.policy.headroom.power import usable
from wattline.spec.policy import Thresholds
from wattline.state import Claim, JobState, Snapshot

_LEAST_KELVIN_PER_WATT = 1e-12  # a loop that nothing warms


def choose_attention(snapshot: Snapshot, thresholds: Thresholds) -> list[str]:
    """Jobs to judge for pressure, by name; all others are as they were."""
    look = _Look(snapshot, thresholds)
    max_age = thresholds.reading_max_age
    found = set(snapshot.restless)
    for resource in look.choose_pressed(snapshot.touched_resources):
        found.update(snapshot.jobs_on(resource))
    for resource in snapshot.unread_resources(max_age):
        if look.is_pressed(resource):
            found.update(snapshot.jobs_on(resource))
    for node in {*snapshot.touched_nodes, *snapshot.unread_nodes(max_age)}:
        jobs = snapshot.jobs_at(node)
        if jobs and look.is_warm(node):
            found.update(jobs)
    for job_id in snapshot.changed:
        job = snapshot.job(job_id)
        if job.state is not JobState.RUNNING or job_id in found:
            continue
        claim = snapshot.claim(job_id)
        if claim is not None and (job.rung >= 0 or look.is_any_warm(claim) or look.is_any_pressed(claim)):
            found.add(job_id)
    return sorted(found)


class _Look:
    """One look around: each loop is judged once."""

    __slots__ = ("_calm", "_limits", "_loops", "_max_age", "_over", "_snapshot", "_thresholds", "_unread")

    def __init__(self, snapshot: Snapshot, thresholds: Thresholds) -> None:
        self._snapshot, self._thresholds = snapshot, thresholds
        self._max_age = thresholds.reading_max_age
        self._calm: dict[int, bool] = {}
        self._over = snapshot.may_be_over(max(thresholds.power_margin, thresholds.cooling_margin))
        self._unread = snapshot.may_be_unread(self._max_age)
        self._loops = snapshot.plant.loop_of_resource
        self._limits = _CalmLimits.of(snapshot)

    def is_pressed(self, resource: int) -> bool:
        """Whether more is drawn than may be, or a loop is not calm."""
        if resource in self._loops and not self.is_calm(resource):
            return True
        snapshot, max_age = self._snapshot, self._max_age
        if self._over is not None and resource not in self._over and snapshot.is_read(resource, max_age):
            return False
        return snapshot.drawn(resource, max_age) > usable(snapshot, resource, self._thresholds)

    def choose_pressed(self, resources: Iterable[int]) -> list[int]:
        """Those of them that are."""
        over, unread, loops = self._over, self._unread, self._loops
        if over is None or unread is None:
            return [resource for resource in resources if self.is_pressed(resource)]
        found = []
        for resource in resources:
            if resource in over or resource in unread:
                if self.is_pressed(resource):
                    found.append(resource)
            elif resource in loops and not self.is_calm(resource):
                found.append(resource)
        return found

    def is_any_warm(self, claim: Claim) -> bool:
        return any(self.is_warm(node) for node, _ in claim.nodes)

    def is_any_pressed(self, claim: Claim) -> bool:
        """Whether anything that a claim on calm loops takes of is pressed."""
        over, unread = self._over, self._unread
        if over is None or unread is None:
            return any(self.is_pressed(resource) for resource, _ in claim.amounts)
        for resource, _ in claim.amounts:
            if (resource in over or resource in unread) and self.is_pressed(resource):
                return True
        return False

    def is_calm(self, loop: int) -> bool:
        known = self._calm.get(loop)
        if known is None:
            known = self._calm[loop] = self._limits.is_calm(self._snapshot, loop, self._max_age)
        return known

    def is_warm(self, node: int) -> bool:
        """Whether a node is hot, or on a loop where it may become so."""
        loop = self._snapshot.plant.spots[node].loop_resource
        return not self.is_calm(loop) or _is_hot(self._snapshot, node, self._thresholds)


class _CalmLimits:
    """Up to which heat and which coolant is a loop calm? Worked out for its supply and flow, and kept."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, float, float, float]] = {}  # supply, flow; watts, coolant

    @staticmethod
    def of(snapshot: Snapshot) -> _CalmLimits:
        found = snapshot.lasting.get(_CalmLimits)
        if not isinstance(found, _CalmLimits):
            found = snapshot.lasting[_CalmLimits] = _CalmLimits()
        return found

    def is_calm(self, snapshot: Snapshot, loop: int, max_age_seconds: float) -> bool:
        conditions = snapshot.conditions
        supply_celsius = conditions.supply_celsius.get(loop)
        if supply_celsius is None:
            supply_celsius = snapshot.plant.loop_of_resource[loop].supply_celsius
        flow_fraction = conditions.flow_fraction.get(loop, 1.0)
        known = self._known.get(loop)
        if known is None or known[0] != supply_celsius or known[1] != flow_fraction:
            watts, celsius = _find_calm_limits(snapshot, loop)
            known = self._known[loop] = (supply_celsius, flow_fraction, watts, celsius)
        coolant = conditions.coolant_celsius.get(loop)
        # A node that nobody reads counts as resting on its coolant, which may be warmer than it will stay.
        resting = supply_celsius if coolant is None else coolant[0]
        return resting < known[3] and snapshot.drawn(loop, max_age_seconds) <= known[2]


def _find_calm_limits(snapshot: Snapshot, loop: int) -> tuple[float, float]:
    """The watts and the coolant temperature up to which every device of a loop stays cool at full draw."""
    least_watts, least_celsius = math.inf, math.inf
    for cooling in snapshot.plant.coolings_on_loop.get(loop, ()):
        device = snapshot.plant.coolings[cooling].device
        full_watts = BEYOND_LIMIT * device.limit_watts
        alone = predict_die_steady(snapshot, cooling, full_watts, 0.0)
        more = predict_die_steady(snapshot, cooling, full_watts, 1.0)
        if alone is None or more is None:
            return -math.inf, -math.inf
        room_kelvin, kelvin_per_watt = device.throttle_celsius - alone, more - alone
        least_watts = min(least_watts, room_kelvin / max(kelvin_per_watt, _LEAST_KELVIN_PER_WATT))
        resting_kelvin = predict_resting_kelvin(snapshot, cooling)
        least_celsius = min(least_celsius, device.throttle_celsius - resting_kelvin)
    return least_watts, least_celsius


def next_unread_at(snapshot: Snapshot, max_age_seconds: float) -> float | None:
    """The first moment when a reading of a GPU that is still believed no longer will be."""
    heard = [at for at in snapshot.heard_at if snapshot.at - at <= max_age_seconds]
    if not heard:  # where a site vouches for its meters, it falls silent before they do
        for column in (snapshot.conditions.node_celsius, snapshot.conditions.node_gpu_watts):
            fresh = (read_at for _, read_at in column.values() if snapshot.at - read_at <= max_age_seconds)
            heard += islice(fresh, 1)
    return math.nextafter(min(heard) + max_age_seconds, math.inf) if heard else None


def _is_hot(snapshot: Snapshot, node: int, thresholds: Thresholds) -> bool:
    device = snapshot.plant.spots[node].node.device
    if device is None:
        return False
    watts, limit = snapshot.conditions.node_gpu_watts.get(node), device.throttle_celsius
    if watts is not None and watts[0] > BEYOND_LIMIT * device.limit_watts:
        return True
    read = node in snapshot.conditions.node_celsius
    return read and predict_die_now(snapshot, node, limit, thresholds) >= limit
