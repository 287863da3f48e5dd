"""Dies: how many kelvin above its coolant does each GPU model run for each watt, and how fast does it follow?

Each GPU is fitted alone, with its own offset, and the model's figure is what they say together. Its flow
dependence is taken from physics: telemetry seldom has enough flow changes to fit it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from wattline.facility import CoolingKind, Facility
from wattline.physics import ThermalParameters, thermal_parameters
from wattline.twin.calibrate.first_order import FirstOrder
from wattline.twin.calibrate.fit import (
    Figure,
    Fit,
    cannot_tell,
    conclude,
    is_usable,
    note_time_scale,
    summarise,
)
from wattline.twin.calibrate.intervals import Estimate
from wattline.twin.calibrate.meters import Gpu, Meters, gpus_of, metered
from wattline.twin.calibrate.series import Series, swing
from wattline.twin.calibrate.thermal import fit_temperature

# More GPUs of one kind than this make an interval narrower than chips differ, and the answer slower.
_MOST_GPUS = 64
_LEAST_SWING_SHARE = 0.05  # of the limit: less is a load that never changed
_LIQUID = (CoolingKind.DIRECT_TO_CHIP, CoolingKind.IMMERSION)


def fit_dies(facility: Facility, meters: Meters) -> Iterator[Fit]:
    """Two figures for each GPU model and cooling kind of the facility."""
    kinds: dict[tuple[str, CoolingKind], list[Gpu]] = defaultdict(list)
    for gpu in gpus_of(facility):
        kinds[gpu.device.name, gpu.loop.kind].append(gpu)
    for (model, kind), gpus in kinds.items():
        nominal = thermal_parameters(gpus[0].device, gpus[0].loop)
        resistance = Figure(
            subject=f"{model} on {kind}",
            parameter="kelvin_per_watt",
            present=nominal.kelvin_per_watt,
            path=("devices", model, "kelvin_per_watt_liquid" if kind in _LIQUID else "kelvin_per_watt_air"),
        )
        lag = Figure(
            subject=f"{model} on {kind}",
            parameter="die_time_constant_seconds",
            present=nominal.kelvin_per_watt * nominal.joules_per_kelvin,
        )
        yield from _fit_kind(resistance, lag, gpus, nominal, meters)


def _fit_kind(
    resistance: Figure, lag: Figure, gpus: Sequence[Gpu], nominal: ThermalParameters, meters: Meters
) -> Iterator[Fit]:
    found = [(gpu, _meters_of(gpu, meters)) for gpu in metered(gpus, meters)]
    usable = [(gpu, series) for gpu, series in found if not isinstance(series, str)]
    if not usable:
        reason = summarise(list(dict.fromkeys(series for _, series in found if isinstance(series, str))))
        yield from (cannot_tell(figure, reason) for figure in (resistance, lag))
        return
    every = math.ceil(len(usable) / _MOST_GPUS)
    fits = [(gpu, _fit_gpu(gpu, *series, nominal, meters)) for gpu, series in usable[::every]]
    yield _joined(resistance, [(gpu, fit, fit.gain, fit.gain_reason) for gpu, fit in fits])
    slow = [(gpu, fit, fit.time_constant, fit.time_constant_reason) for gpu, fit in fits]
    yield _joined(lag, slow, note_time_scale(gpu.time_scale for gpu, _ in fits))


def _meters_of(gpu: Gpu, meters: Meters) -> tuple[Series, Series, Series] | str:
    """Temperature, coolant and watts of a GPU, or why they cannot be used."""
    needed = ((gpu.subject, "gpu_celsius"), (gpu.loop.name, "coolant_celsius"), (gpu.subject, "gpu_watts"))
    found = []
    for subject, quantity in needed:
        series = meters.find(subject, quantity)
        if series is None:
            where = f" of loop {subject}" if subject == gpu.loop.name else ""
            return meters.why_not(subject, quantity, where)
        found.append(series)
    celsius, coolant, watts = found
    moved = swing(watts.values)
    if moved < _LEAST_SWING_SHARE * gpu.device.limit_watts:
        return f"GPU power of {gpu.subject} never moved by more than {moved:.3g} W"
    return celsius, coolant, watts


def _fit_gpu(
    gpu: Gpu, celsius: Series, coolant: Series, watts: Series, nominal: ThermalParameters, meters: Meters
) -> FirstOrder:
    flow = meters.find(gpu.loop.name, "flow_fraction")
    pace = None
    if flow is not None:
        slower = [nominal.resistance(fraction) / nominal.kelvin_per_watt for fraction in flow.values.tolist()]
        pace = Series(flow.at, 1.0 / np.array(slower))
    return fit_temperature(
        celsius,
        coolant,
        watts,
        pace=pace,
        scale=gpu.time_scale,
        present_seconds=nominal.kelvin_per_watt * nominal.joules_per_kelvin,
    )


def _joined(
    figure: Figure, fits: Sequence[tuple[Gpu, FirstOrder, Estimate | None, str]], note: str = ""
) -> Fit:
    good = [(estimate, fit) for _, fit, estimate, _ in fits if estimate is not None and is_usable(estimate)]
    if good:
        samples = sum(fit.samples for _, fit in good)
        return conclude(figure, [estimate for estimate, _ in good], samples, note=note)
    reasons = [f"{gpu.subject}: {reason or 'its readings are too noisy'}" for gpu, _, _, reason in fits]
    return cannot_tell(figure, summarise(reasons), sum(fit.samples for _, fit, _, _ in fits))
