"""Draw: what does a GPU model draw when it is idle, and when it is busy all the time without a cap?

Needs utilisation: a low draw alone may as well be a light load. Idle is the densest half of the readings, so
that a GPU which holds memory part of the time does not blur it; busy is the median.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from wattline.facility import Facility
from wattline.twin.calibrate.fit import Figure, Fit, cannot_tell, conclude, is_usable, summarise
from wattline.twin.calibrate.intervals import resample
from wattline.twin.calibrate.meters import Gpu, Meters, gpus_of, metered
from wattline.twin.calibrate.series import Array, Mask

_IDLE_UTILISATION = 0.02
_FULL_UTILISATION = 0.95
_UNCAPPED_FRACTION = 0.99
_FEWEST = 30

_Choice = Callable[[Gpu, Meters, Array], Mask]


def fit_draw(facility: Facility, meters: Meters) -> Iterator[Fit]:
    """Two figures for each GPU model."""
    models: dict[str, list[Gpu]] = defaultdict(list)
    for gpu in gpus_of(facility):
        models[gpu.device.name].append(gpu)
    for model, gpus in models.items():
        device = gpus[0].device
        idle = Figure(
            subject=model,
            parameter="idle_watts",
            present=device.idle_watts,
            path=("devices", model, "idle"),
        )
        full = Figure(subject=model, parameter="full_utilisation_watts", present=device.limit_watts)
        yield _fit(idle, gpus, meters, _is_idle, _densest, f"at {_IDLE_UTILISATION:.0%} utilisation or less")
        yield _fit(full, gpus, meters, _is_full, _median, f"at {_FULL_UTILISATION:.0%} or more without a cap")


def _fit(
    figure: Figure,
    gpus: Sequence[Gpu],
    meters: Meters,
    choose: _Choice,
    statistic: Callable[[Array], float],
    when: str,
) -> Fit:
    estimates, samples, reasons = [], 0, []
    for gpu in metered(gpus, meters):
        missing = [
            name for name in ("gpu_watts", "gpu_utilisation") if meters.find(gpu.subject, name) is None
        ]
        if missing:
            reasons.append(meters.why_not(gpu.subject, missing[0]))
            continue
        watts = meters.series[gpu.subject, "gpu_watts"]
        values = watts.values[choose(gpu, meters, watts.at)]
        if len(values) < _FEWEST:
            reasons.append(f"fewer than {_FEWEST} readings of {gpu.subject} {when}")
            continue
        estimate = resample(values, statistic)
        if is_usable(estimate):
            estimates.append(estimate)
            samples += len(values)
    if estimates:
        return conclude(figure, estimates, samples)
    return cannot_tell(figure, summarise(list(dict.fromkeys(reasons)) or ["its draw is too uneven"]))


def _is_idle(gpu: Gpu, meters: Meters, moments: Array) -> Mask:
    """Also at the readings around: a moment at the edge of a load is not idle."""
    used = meters.series[gpu.subject, "gpu_utilisation"]
    idle: Mask = np.maximum(used.last(moments), used.next(moments)) <= _IDLE_UTILISATION
    return idle


def _is_full(gpu: Gpu, meters: Meters, moments: Array) -> Mask:
    used = meters.series[gpu.subject, "gpu_utilisation"]
    full: Mask = np.minimum(used.last(moments), used.next(moments)) >= _FULL_UTILISATION
    limit = meters.find(gpu.subject, "gpu_limit_watts")
    if limit is not None:
        full &= limit.last(moments) >= _UNCAPPED_FRACTION * gpu.device.limit_watts
    return full


def _densest(values: Array) -> float:
    """The mean of the shortest interval that holds half of the readings."""
    ordered = np.sort(values)
    half = len(ordered) // 2 + 1
    widths = ordered[half - 1 :] - ordered[: len(ordered) - half + 1]
    first = int(np.argmin(widths))
    return float(ordered[first : first + half].mean())


def _median(values: Array) -> float:
    return float(np.median(values))
