"""Meters: which thing of the facility does each series speak of, and is it in the unit its name says?

Names are read with their site or without, as faults and readings use them. A series that is a thousand times
what its thing can be is set aside and told, never converted: a guess that is wrong would look like a fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wattline.facility import Device, Facility, Loop, Node, Rack, Site
from wattline.twin.calibrate.series import Series
from wattline.twin.calibrate.telemetry import Telemetry
from wattline.units import format_watts

_SPEEDS = frozenset({"throughput", "gpu_limit_watts"})  # what jobs may be measured by
_TOO_MUCH, _TOO_LITTLE = 20.0, 0.002
_HOTTEST_CELSIUS = 150.0
_FULLEST_FRACTION = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class Gpu:
    """One GPU and what is around it."""

    subject: str
    device: Device
    loop: Loop
    time_scale: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Meters:
    """Series by the facility's own names."""

    series: Mapping[tuple[str, str], Series]
    suspect: Mapping[tuple[str, str], str]  # set aside, and why
    unknown: Mapping[str, int] = field(default_factory=dict)  # subjects that are not here: readings

    def find(self, subject: str, quantity: str) -> Series | None:
        return self.series.get((subject, quantity))

    def why_not(self, subject: str, quantity: str, where: str = "") -> str:
        return self.suspect.get((subject, quantity), f"no {quantity}{where} was given")

    def measured(self, quantity: str) -> set[str]:
        return {subject for subject, known in self.series if known == quantity}


def metered(gpus: Sequence[Gpu], meters: Meters) -> Sequence[Gpu]:
    """Those of which anything was said; all where nothing was, so that there is somebody to say it of."""
    known = {subject for subject, _ in (*meters.series, *meters.suspect)}
    return [gpu for gpu in gpus if gpu.subject in known] or gpus


def gpus_of(facility: Facility) -> Iterator[Gpu]:
    for site, rack, node in _nodes(facility):
        loop = next(loop for loop in site.loops if loop.name == rack.loop)
        for number in range(node.gpus):
            if node.device is not None:
                yield Gpu(f"{node.name}/gpu{number}", node.device, loop, site.thermal_time_scale)


def match_meters(telemetry: Telemetry, facility: Facility) -> Meters:
    """Give every series its place; series whose subject fits nothing, or two things, are left out."""
    watts_of = _plausible_watts(facility)
    full_names = _full_names(watts_of)
    jobs = {subject for subject, quantity in telemetry.series if quantity == "throughput"}
    series: dict[tuple[str, str], Series] = {}
    suspect: dict[tuple[str, str], str] = {}
    unknown: dict[str, int] = defaultdict(int)
    for (said, quantity), one in telemetry.series.items():
        subject = full_names.get(said, said)
        if subject not in watts_of and not (said in jobs and quantity in _SPEEDS):
            unknown[said] += len(one)
        elif doubt := _doubt(one, quantity, watts_of.get(subject)):
            suspect[subject, quantity] = f"{quantity} of {subject} {doubt}"
        else:
            series[subject, quantity] = one
    return Meters(series=series, suspect=suspect, unknown=dict(unknown))


def _nodes(facility: Facility) -> Iterator[tuple[Site, Rack, Node]]:
    for site in facility.sites:
        for rack in site.racks:
            for node in rack.nodes:
                yield site, rack, node


def _plausible_watts(facility: Facility) -> dict[str, float]:
    """Everything that has meters, with about what it draws or carries at most."""
    known = {loop.name: loop.capacity_watts for site in facility.sites for loop in site.loops}
    known |= {rack.name: rack.cap_watts for site in facility.sites for rack in site.racks}
    known |= {node.name: node.nameplate_watts for _, _, node in _nodes(facility)}
    known |= {gpu.subject: gpu.device.limit_watts for gpu in gpus_of(facility)}
    return known


def _full_names(known: Mapping[str, float]) -> dict[str, str]:
    """Names as people may write them; without its site only where one site has it."""
    short: dict[str, list[str]] = defaultdict(list)
    for name in known:
        short[name.split("/", 1)[-1]].append(name)
    return {name: full[0] for name, full in short.items() if len(full) == 1} | {name: name for name in known}


def _doubt(series: Series, quantity: str, usual_watts: float | None) -> str:
    high = float(np.percentile(series.values, 98.0))
    if quantity.endswith("celsius") and high > _HOTTEST_CELSIUS:
        return f"reaches {high:.4g}: kelvin?"
    if quantity in ("gpu_utilisation", "flow_fraction") and high > _FULLEST_FRACTION:
        return f"reaches {high:.4g}: percent?"
    if quantity.endswith("watts") and usual_watts:
        if high > _TOO_MUCH * usual_watts:
            return f"reaches {high:,.0f}, where {format_watts(usual_watts)} is usual: milliwatts?"
        if 0.0 < high < _TOO_LITTLE * usual_watts:
            return f"reaches only {high:.3g}, where {format_watts(usual_watts)} is usual: kilowatts?"
    return ""
