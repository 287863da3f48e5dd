"""The report: what did a window cost, by which source, and how much of it is known?"""

from __future__ import annotations

import msgspec

from wattline.observing.asking import Asked


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """GPU-hours that brought nobody forward, for one reason."""

    name: str  # queueing, failed jobs, retries, throttling, idle in allocations
    gpu_hours: float | None  # None: could not be known
    share: float | None  # of the GPU-hours that jobs held
    by: dict[str, float]  # the most first
    detail: str
    source: str
    coverage: float | None  # of the GPU-hours it could be known for
    is_estimated: bool = False


class State(msgspec.Struct, frozen=True, kw_only=True):
    """How GPUs at work did on average, with nothing in their way or held back."""

    gpu_hours: float
    busy: float | None
    clock: float | None
    watts: float | None
    work: float | None
    joules_per_work: float | None


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """How near a rack, supply or loop came to what it may carry."""

    name: str
    quantity: str
    peak: float
    mean: float
    cap: float | None
    coverage: float


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """The same jobs under one policy, in the twin."""

    policy: str
    wait_minutes_mean: float | None
    wait_minutes_p95: float | None
    energy_kwh: float | None
    throttle_gpu_hours: float | None
    over_caps_seconds: float  # of all racks and supplies, beyond what their breakers bear
    refused: int


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """Wattline less EASY; below zero is better. The interval is of 95 %, seed by seed."""

    metric: str
    difference: float | None
    low: float | None
    high: float | None
    is_clear: bool | None


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """What Wattline would have decided: emulated."""

    jobs: int
    seeds: int
    measured_wait_minutes_mean: float | None
    measured_wait_minutes_p95: float | None
    easy: Arm
    wattline: Arm
    gains: tuple[Gain, ...]
    say: str
    how_sure: str
    left_out: tuple[str, ...]
    emulated: bool = True


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `wattline observe` says."""

    cluster: str
    begins_at: str
    ends_at: str
    hours: float
    step_seconds: float
    nodes: int
    gpus: int
    models: dict[str, int]
    partitions: dict[str, int]
    licenses: dict[str, str]
    jobs: int | None
    available_gpu_hours: float
    allocated_gpu_hours: float | None
    busy_fraction: float | None
    energy_kwh: float | None
    coverage: dict[str, float]
    losses: tuple[Loss, ...]
    free_while_waiting_gpu_hours: float | None
    cancelled_gpu_hours: float | None
    normal: State | None
    degraded: State | None
    limits: tuple[Limit, ...]
    replay: Weighed | None
    assumed: tuple[str, ...]
    remarks: tuple[str, ...]
    not_estimated: tuple[str, ...]
    next_steps: tuple[str, ...]
    asked: tuple[Asked, ...]  # exactly, and in this order
