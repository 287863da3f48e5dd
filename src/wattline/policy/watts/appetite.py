"""Appetite: what does a job draw, what would it draw under another cap, and how fast would it be?

Known of a job is what it declared and what meters read. How fast it is under a cap is taken from its device's
curve, given what it draws without one; that follows from what it draws under the cap it has.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from wattline.facility import Device
from wattline.physics.cap_curve import V100_DRAW_CURVE
from wattline.physics.power import least_cap_fraction
from wattline.policy.giving_way.relief import ladder_of
from wattline.policy.watts.dividing import Level, Menu
from wattline.spec.policy import Policy
from wattline.state import Claim, Job, JobRequest, JobState, Snapshot

# Caps are whole multiples of this share of a limit: few enough to be remembered, fine enough to lose nothing.
STEP = 0.04
# Meters are a few seconds late: what was changed sooner than this ago is not in them yet.
LATE_SECONDS = 5.0
_NOTICED_SECONDS = 60.0  # nobody begins so gently that meters that tell changes say nothing for longer
_WHOLE_WATTS = 2.0  # draws are told apart no finer than this


class Appetite(NamedTuple):
    """Of one GPU of a job, in watts."""

    counted: float  # what it counts for now
    uncapped: float  # what it would draw without a cap, as far as is known
    is_read: bool  # whether meters have had the time to show what it does now
    is_silent: bool = False  # … but some meter of it cannot be read: it counts for all it may draw


def read_appetite(draft: Snapshot, policy: Policy, job: Job, claim: Claim, device: Device) -> Appetite:
    """What a running job is known to want: by what meters read, else by what it declared."""
    declared_watts = declared_gpu_watts(job.request, device)
    began_at = job.since if job.started_at is None else job.started_at
    since = max(job.capped_at, began_at)
    is_read = job.state is JobState.RUNNING and draft.at >= since + LATE_SECONDS
    if not is_read or not _is_noticed(draft, claim, began_at):
        return Appetite(claim.gpu_watts, declared_watts, is_read=False)
    gpus, drawn_watts, is_silent = 0, 0.0, False
    oldest_at = max(since + LATE_SECONDS, draft.at - policy.thresholds.reading_max_age)
    for node, there in claim.nodes:
        gpus += there
        told = draft.conditions.node_gpu_watts.get(node)
        # A meter that fell silent before the change still has a reading, of whoever was there then.
        if told is None or draft.node_read_at(node, told[1]) < oldest_at:
            drawn_watts += there * claim.gpu_watts
            is_silent = True
        else:
            drawn_watts += there * told[0]
    read_watts = drawn_watts / gpus
    if job.power_fraction < 1.0:  # on a node of several jobs, the hungriest was read
        read_watts = min(read_watts, claim.gpu_watts)
    uncapped_watts = V100_DRAW_CURVE.infer_uncapped_watts(job.power_fraction, read_watts)
    counted_watts = read_watts if policy.power_sharing.by == "meters" else claim.gpu_watts
    uncapped_watts = min(uncapped_watts, max(declared_watts, read_watts))
    return Appetite(counted_watts, uncapped_watts, is_read=True, is_silent=is_silent)


def _is_noticed(draft: Snapshot, claim: Claim, began_at: float) -> bool:
    """Whether meters have spoken since a job began; where they stay silent, nothing changed there."""
    if draft.at >= began_at + _NOTICED_SECONDS:
        return True
    told = [draft.conditions.node_gpu_watts.get(node) for node, _ in claim.nodes]
    return all(reading is not None and reading[1] > began_at for reading in told)


def declared_gpu_watts(request: JobRequest, device: Device) -> float:
    if request.peak_watts is None:
        return device.limit_watts
    return max(device.idle_watts, min(device.limit_watts, request.peak_watts / request.gpus))


def is_rigid(job: Job, policy: Policy) -> bool:
    """Whether a job neither bears a cap nor can be paused: it has no ladder and keeps no checkpoints."""
    return not job.request.checkpoints and not ladder_of(job, policy)


def menu_for(
    policy: Policy, device: Device, request: JobRequest, uncapped_watts: float, off_watts: float | None
) -> Menu:
    """All caps a job may have, with what it counts for above idle; `off_watts` where it may be off."""
    by_meters = policy.power_sharing.by == "meters"
    uncapped = max(_WHOLE_WATTS, _WHOLE_WATTS * round(uncapped_watts / _WHOLE_WATTS))
    declared = declared_gpu_watts(request, device)
    return _menu(device, uncapped, declared, by_meters, policy.power_sharing.least_cap, off_watts)


@lru_cache(maxsize=16384)
def _menu(
    device: Device,
    uncapped_watts: float,
    declared_watts: float,
    by_meters: bool,
    least_cap: float,
    off_watts: float | None,
) -> Menu:
    curve, limit_watts = V100_DRAW_CURVE, device.limit_watts
    levels = []
    for fraction in cap_fractions(device, least_cap):
        drawn_watts = curve.predict_watts(limit_watts, fraction, uncapped_watts)
        claimed_watts = min(max(fraction * limit_watts, device.least_limit_watts), declared_watts)
        speed = curve.predict_speed(limit_watts, drawn_watts, uncapped_watts)
        counted_watts = drawn_watts if by_meters else claimed_watts
        levels.append(Level(fraction, max(0.0, counted_watts - device.idle_watts), speed))
    return Menu(tuple(levels), off_watts)


@lru_cache(maxsize=256)
def cap_fractions(device: Device, least_cap: float) -> tuple[float, ...]:
    """The caps that are used, the lowest first; the last is none."""
    least = max(least_cap, least_cap_fraction(device))
    steps = int((1.0 - least) / STEP + 1e-9)
    return tuple([round(1.0 - STEP * step, 4) for step in range(steps, -1, -1)])
