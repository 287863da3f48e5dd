"""Throttling: how long were GPUs held back, by power or by heat, and what work did that cost?

Pure: from matrices to figures. Violation counters say how long; clocks beside the highest say how much. Where
no counters are told, a GPU at work well below its clock counts as held back, and what did it is guessed from
how hot it was and what it drew: an estimate, and said to be one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wattline.facility import DEVICES, Device
from wattline.observing.series import Matrix, Meters
from wattline.units import SECONDS_PER_HOUR

Mask = NDArray[np.bool_]

AT_WORK = 0.05  # busy for less of a step than this, a GPU is idle
_HARD_AT_WORK = 0.5
_BELOW_CLOCK = 0.95
_NEAR_LIMIT = 0.95
_NEAR_KELVIN = 3.0
_DEGRADED = 0.1  # of a step, held back


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Seconds of each step that each GPU was held back, and what of it was work lost."""

    power_seconds: Matrix
    heat_seconds: Matrix
    lost_seconds: Matrix  # NaN where no clock is known
    known: Matrix  # 1 where anything could be said of a GPU and step
    is_estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """In GPU-hours, of all GPUs that a meter tells of."""

    held_by_power: float
    held_by_heat: float
    lost_to_power: float | None
    lost_to_heat: float | None
    coverage: float  # of GPUs and steps, what was told
    is_estimated: bool


def device_of(name: str) -> Device | None:
    """The known model that a driver or a GRES means: `NVIDIA H100 80GB HBM3`, `nvidia_h100_pcie`, `h100`."""
    letters = name.upper()
    return next((device for model, device in DEVICES.items() if model in letters), None)


def find_held(meters: Meters, step_seconds: float) -> Held | None:
    """None where neither counters nor clocks are told."""
    power, heat = meters.get("power_violation_seconds"), meters.get("thermal_violation_seconds")
    slowness = _slowness(meters)
    if power is None and heat is None:
        return None if slowness is None else _guess(meters, slowness, step_seconds)
    shape = (len(meters.gpus), next(iter(meters.matrices.values())).shape[1])
    nothing = np.full(shape, np.nan)
    power, heat = nothing if power is None else power, nothing if heat is None else heat
    known = np.isfinite(power) | np.isfinite(heat)
    power = np.clip(np.nan_to_num(power), 0.0, step_seconds)
    heat = np.clip(np.nan_to_num(heat), 0.0, step_seconds)
    held = np.minimum(power + heat, step_seconds)
    lost = (
        nothing if slowness is None else np.minimum(held, slowness * _working_seconds(meters, step_seconds))
    )
    return Held(
        power_seconds=power,
        heat_seconds=heat,
        lost_seconds=np.where(held > 0, lost, 0.0),
        known=known.astype(float),
        is_estimated=False,
    )


def sum_held(held: Held, gpus: int) -> Throttled:
    """`gpus` is how many there are: those that no meter tells of are not covered."""
    both = held.power_seconds + held.heat_seconds
    unknown = np.isnan(held.lost_seconds)
    is_told = not (unknown & (both > 0)).any()
    lost = np.nan_to_num(held.lost_seconds)
    by_power = _share_of_power(held.power_seconds, held.heat_seconds, lost)
    lost_to_power = float((lost * by_power).sum()) / SECONDS_PER_HOUR
    return Throttled(
        held_by_power=float(held.power_seconds.sum()) / SECONDS_PER_HOUR,
        held_by_heat=float(held.heat_seconds.sum()) / SECONDS_PER_HOUR,
        lost_to_power=lost_to_power if is_told else None,
        lost_to_heat=float(lost.sum()) / SECONDS_PER_HOUR - lost_to_power if is_told else None,
        coverage=covered(held, gpus),
        is_estimated=held.is_estimated,
    )


def covered(held: Held, gpus: int) -> float:
    points = max(gpus, held.known.shape[0]) * held.known.shape[1]
    return float(held.known.sum()) / points if points else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How GPUs at work did, on average, in some steps."""

    gpu_hours: float
    busy: float | None
    clock: float | None  # of the highest
    watts: float | None
    work: float | None  # busy times clock: what an hour brought forward, a stand-in for throughput


def find_conditions(meters: Meters, held: Held, step_seconds: float) -> tuple[Condition, Condition]:
    """Normal, and degraded: in steps that were held back for a tenth or more."""
    busy = meters.get("busy_fraction")
    at_work = np.isfinite(held.power_seconds) if busy is None else busy >= AT_WORK
    at_work &= held.known > 0
    is_degraded = held.power_seconds + held.heat_seconds >= _DEGRADED * step_seconds
    slowness = _slowness(meters)
    clock = None if slowness is None else 1.0 - slowness
    watts = watts_of(meters, step_seconds)

    def condition(where: Mask) -> Condition:
        chosen = at_work & where
        means = [_mean(matrix, chosen) for matrix in (busy, clock, watts)]
        work = None if busy is None or clock is None else _mean(busy * clock, chosen)
        hours = float(chosen.sum()) * step_seconds / SECONDS_PER_HOUR
        return Condition(gpu_hours=hours, busy=means[0], clock=means[1], watts=means[2], work=work)

    return condition(~is_degraded), condition(is_degraded)


def watts_of(meters: Meters, step_seconds: float) -> Matrix | None:
    """By the energy counter where there is one: it misses nothing between scrapes."""
    joules, watts = meters.get("joules"), meters.get("watts")
    if joules is None:
        return watts
    drawn = joules / step_seconds
    return drawn if watts is None else np.where(np.isfinite(drawn), drawn, watts)


def _working_seconds(meters: Meters, step_seconds: float) -> Matrix:
    idle = meters.get("idle_fraction")
    if idle is None:
        return np.full((len(meters.gpus), 1), step_seconds)
    return step_seconds * np.clip(1.0 - np.nan_to_num(idle), 0.0, 1.0)


def _share_of_power(power: Matrix, heat: Matrix, lost: Matrix) -> Matrix:
    """Of what is lost in each step. Where both held back, each weighs by how much it slows alone."""
    alone = [
        float(lost[own].sum() / seconds[own].sum()) if own.any() else 1.0
        for seconds, own in ((power, (power > 0) & (heat == 0)), (heat, (heat > 0) & (power == 0)))
    ]
    weighed = [max(1e-6, slows) * seconds for slows, seconds in zip(alone, (power, heat), strict=True)]
    whole = weighed[0] + weighed[1]
    share: Matrix = np.divide(weighed[0], whole, out=np.zeros_like(whole), where=whole > 0)
    return share


def _slowness(meters: Meters) -> Matrix | None:
    """How far each clock is below the highest, as a share of it; by model, where no highest is told."""
    clock = meters.get("clock_mhz")
    if clock is None:
        return None
    highest = np.full(len(meters.gpus), np.nan)
    told = meters.get("most_clock_mhz")
    models = np.array([meters.models.get(gpu, "") for gpu in meters.gpus])
    for model in np.unique(models):
        own = clock[models == model]
        seen = own[np.isfinite(own)]
        if len(seen):
            highest[models == model] = np.percentile(seen, 99)
    if told is not None:
        most = np.max(told, axis=1, initial=-np.inf, where=np.isfinite(told))
        highest = np.where(most > 0, most, highest)
    with np.errstate(invalid="ignore", divide="ignore"):
        slowness: Matrix = np.clip(1.0 - clock / highest[:, None], 0.0, 1.0)
    return slowness


def _guess(meters: Meters, slowness: Matrix, step_seconds: float) -> Held | None:
    busy = meters.get("busy_fraction")
    if busy is None:
        return None  # a clock that is low is most often that of a GPU without work
    known = np.isfinite(busy) & np.isfinite(slowness)
    is_held = known & (busy >= _HARD_AT_WORK) & (slowness > 1.0 - _BELOW_CLOCK)
    devices = [device_of(meters.models.get(gpu, "")) for gpu in meters.gpus]
    throttles = np.array([np.nan if device is None else device.throttle_celsius for device in devices])
    celsius, watts, limit = (meters.get(name) for name in ("celsius", "watts", "limit_watts"))
    if limit is None:
        limit = np.array([np.nan if device is None else device.limit_watts for device in devices])[:, None]
    nowhere = np.zeros_like(is_held)
    is_hot = nowhere if celsius is None else is_held & (celsius >= throttles[:, None] - _NEAR_KELVIN)
    is_full = nowhere if watts is None else is_held & ~is_hot & (watts >= _NEAR_LIMIT * limit)
    return Held(
        power_seconds=np.where(is_full, step_seconds, 0.0),
        heat_seconds=np.where(is_hot, step_seconds, 0.0),
        lost_seconds=np.where(is_full | is_hot, slowness * step_seconds, 0.0),
        known=known.astype(float),
        is_estimated=True,
    )


def _mean(matrix: Matrix | None, where: Mask) -> float | None:
    if matrix is None:
        return None
    chosen = matrix[where & np.isfinite(matrix)]
    return float(chosen.mean()) if len(chosen) else None
