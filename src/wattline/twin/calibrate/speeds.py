"""Speeds: how fast does a GPU model work under each power cap, relative to none?

Only caps that were really set give points, and each GPU, node or job is compared with itself without a cap:
absolute throughput differs by model and batch, the ratio hardly does. Readings too hot to be limited by power
alone, and those in which the cap just changed, are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from wattline.facility import Device, Facility
from wattline.physics.cap_curve import device_cap_curve
from wattline.twin.calibrate.fit import Figure, Fit, cannot_tell, conclude, is_usable, summarise
from wattline.twin.calibrate.intervals import Estimate, resample
from wattline.twin.calibrate.meters import Meters, gpus_of
from wattline.twin.calibrate.series import Array, Series

_WHOLE = 1.0
_FEWEST = 10


def fit_speeds(facility: Facility, meters: Meters) -> Iterator[Fit]:
    """A point for each cap that was set, for each GPU model."""
    devices = {gpu.device.name: gpu.device for gpu in gpus_of(facility)}
    ratios: dict[str, dict[float, list[tuple[Estimate, int]]]] = {
        model: defaultdict(list) for model in devices
    }
    reasons: dict[str, list[str]] = defaultdict(list)
    limits = _limits_of(facility, meters)
    only = next(iter(devices)) if len(devices) == 1 else None
    for subject in sorted(meters.measured("throughput")):
        model, limit = limits.get(subject, (only, meters.find(subject, "gpu_limit_watts")))
        if model is None:
            continue
        if limit is None:
            reasons[model].append(f"{meters.why_not(subject, 'gpu_limit_watts')} for {subject}")
            continue
        found = _ratios(
            meters.series[subject, "throughput"], limit, devices[model], _celsius(subject, meters)
        )
        if not found:
            reasons[model].append(f"{subject} did not run both with and without a cap for {_FEWEST} readings")
        for cap_fraction, ratio in found.items():
            ratios[model][cap_fraction].append(ratio)
    for model, device in devices.items():
        yield from _points(device, ratios[model], reasons[model])


def _points(
    device: Device, ratios: Mapping[float, list[tuple[Estimate, int]]], reasons: list[str]
) -> Iterator[Fit]:
    if not ratios:
        figure = Figure(subject=device.name, parameter="speed_under_cap", present=None)
        yield cannot_tell(figure, summarise(reasons or ["no throughput was given"]))
    curve, limit_watts = device_cap_curve(device.idle_watts), device.limit_watts
    for cap_fraction, found in sorted(ratios.items(), reverse=True):
        figure = Figure(
            subject=device.name,
            parameter="speed_under_cap",
            present=curve.predict(cap_fraction * limit_watts, limit_watts),
            cap_fraction=cap_fraction,
        )
        yield conclude(figure, [ratio for ratio, _ in found], sum(samples for _, samples in found))


def _limits_of(facility: Facility, meters: Meters) -> dict[str, tuple[str, Series | None]]:
    """The power limit of each GPU, and of each node by its first GPU that tells one."""
    limits: dict[str, tuple[str, Series | None]] = {}
    for gpu in gpus_of(facility):
        limit, node = meters.find(gpu.subject, "gpu_limit_watts"), gpu.subject.rsplit("/", 1)[0]
        limits[gpu.subject] = (gpu.device.name, limit)
        if limits.get(node, (gpu.device.name, None))[1] is None:
            limits[node] = (gpu.device.name, limit)
    return limits


def _celsius(subject: str, meters: Meters) -> Series | None:
    return meters.find(subject, "gpu_celsius")


def _ratios(
    throughput: Series, limit: Series, device: Device, celsius: Series | None
) -> dict[float, tuple[Estimate, int]]:
    """Throughput at each cap over throughput without one, as this subject shows it."""
    caps = np.minimum(np.round(limit.last(throughput.at) / device.limit_watts, 2), _WHOLE)
    steady = np.append(False, np.diff(caps) == 0.0) & (throughput.values > 0.0)
    if celsius is not None:
        steady &= celsius.between(throughput.at) < device.throttle_celsius
    by_cap = {float(cap): throughput.values[steady & (caps == cap)] for cap in np.unique(caps[steady])}
    by_cap = {cap: values for cap, values in by_cap.items() if len(values) >= _FEWEST}
    whole = by_cap.pop(_WHOLE, None)
    if whole is None:
        return {}
    free = resample(whole, _mean)
    found = {}
    for cap, values in by_cap.items():
        ratio = _divide(resample(values, _mean), free)
        if is_usable(ratio):
            found[cap] = (ratio, len(values) + len(whole))
    return found


def _mean(values: Array) -> float:
    return float(values.mean())


def _divide(part: Estimate, whole: Estimate) -> Estimate:
    value = part.value / whole.value
    error = value * float(np.hypot(part.error / part.value, whole.error / whole.value))
    return Estimate(value=value, error=error, freedom=min(part.freedom, whole.freedom))
