"""Telemetry of a hall whose parameters are known, made with the equations of physics and imperfect meters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wattline.facility import DEVICES, Device, Facility
from wattline.physics import (
    LoopParameters,
    ThermalInputs,
    ThermalParameters,
    ThermalState,
    advance,
    predict_steady,
)
from wattline.spec import FacilityDocument, build_facility, parse_document

HALL = """\
# A hall for one row.
facility: hall
sites:
  north:
    region: eu
    tariff: {energy: 0.2}
    carbon: {zone: DE, intensity: 300}
    feeds: {wall: {rating: 40kW}}
    loops:
      crah: {kind: air, capacity: 4kW, supply: 22C}  # one unit
    racks:
      r1: {cap: 9kW, power: [wall], loop: crah, nodes: {gpu: A100, gpus: 4, cpus: 8, other: 100W}}
    storage: {throughput: 1GB/s}
"""
BEGINS_AT = 1704067200.0
LOOP = "north/crah"
NODE = "north/r1-n1"

Row = tuple[float, str, str, float]


def a_hall(text: str = HALL) -> Facility:
    return build_facility(parse_document(text.encode(), FacilityDocument, file="hall.yaml"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What the hall is really like; the document above says otherwise."""

    kelvin_per_watt: float = 0.085
    die_seconds: float = 38.0
    approach_kelvin: float = 8.0
    loop_seconds: float = 70.0
    capacity_watts: float = 4000.0
    device: Device = DEVICES["A100"]

    @property
    def parameters(self) -> ThermalParameters:
        watts_per_kelvin = self.capacity_watts / self.approach_kelvin
        return ThermalParameters(
            loop=LoopParameters(
                watts_per_kelvin=watts_per_kelvin, joules_per_kelvin=watts_per_kelvin * self.loop_seconds
            ),
            kelvin_per_watt=self.kelvin_per_watt,
            joules_per_kelvin=self.die_seconds / self.kelvin_per_watt,
            flow_dependent_fraction=0.3,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Meters:
    """How well it is measured."""

    every_seconds: float = 2.0
    readings: int = 1800
    celsius_noise: float = 0.3
    celsius_step: float = 1.0
    celsius_offset: float = -0.5  # GPUs cut off what is behind the point
    watts_noise: float = 2.0
    gpus: int = 1
    flows: Sequence[float] = (1.0,)


_TRUTH, _METERS = Truth(), Meters()


def telemetry(seed: int, truth: Truth = _TRUTH, meters: Meters = _METERS) -> list[Row]:
    """Loads that change at odd moments, between readings as well."""
    generator = np.random.default_rng(seed)
    rows: list[Row] = []
    parameters = truth.parameters
    watts = np.full(meters.gpus, truth.device.idle_watts)
    other_watts, flow = 500.0, meters.flows[0]
    rest = predict_steady(
        parameters,
        ThermalInputs(
            supply_celsius=22.0, flow_fraction=flow, loop_watts=1500.0, device_watts=float(watts[0])
        ),
    )
    coolant, dies = rest.coolant_celsius, np.full(meters.gpus, rest.die_celsius)
    next_load = 0.0
    for number in range(meters.readings):
        now = number * meters.every_seconds
        supply = 22.0 + math.sin(now / 900.0)
        rows += _read(generator, meters, now, (coolant, supply, flow, other_watts), dies, watts)
        until = now + meters.every_seconds
        while now < until:
            pause = min(until, max(next_load, now)) - now
            heat = other_watts + float(watts.sum())
            inputs = ThermalInputs(supply_celsius=supply, flow_fraction=flow, loop_watts=heat)
            for index in range(meters.gpus):
                state = ThermalState(coolant_celsius=coolant, die_celsius=float(dies[index]))
                driven = replace(inputs, device_watts=float(watts[index]))
                after = advance(parameters, state, driven, pause)
                dies[index] = after.die_celsius
            coolant = after.coolant_celsius
            now += pause
            if now >= next_load:
                watts = generator.uniform(truth.device.idle_watts, truth.device.limit_watts, meters.gpus)
                other_watts = generator.uniform(200.0, 2400.0)
                flow = meters.flows[int(generator.integers(len(meters.flows)))]
                next_load = now + generator.exponential(150.0)
    return rows


def _read(
    generator: np.random.Generator,
    meters: Meters,
    now: float,
    loop: tuple[float, float, float, float],
    dies: np.ndarray,
    watts: np.ndarray,
) -> list[Row]:
    at = BEGINS_AT + now
    coolant, supply, flow, other_watts = loop
    rows = [
        (at, LOOP, "coolant_celsius", round(coolant + generator.normal(0, 0.1), 1)),
        (at, LOOP, "supply_celsius", round(float(supply) + generator.normal(0, 0.05), 1)),
        (at, LOOP, "flow_fraction", flow),
        (at, LOOP, "loop_heat_watts", other_watts + float(watts.sum()) + generator.normal(0, 10.0)),
    ]
    for index, (celsius, drawn) in enumerate(zip(dies.tolist(), watts.tolist(), strict=True)):
        noisy = celsius + meters.celsius_offset + generator.normal(0, meters.celsius_noise)
        if meters.celsius_step:
            noisy = round(noisy / meters.celsius_step) * meters.celsius_step
        subject = f"{NODE}/gpu{index}"
        rows.append((at, subject, "gpu_celsius", noisy))
        rows.append((at, subject, "gpu_watts", round(drawn + generator.normal(0, meters.watts_noise), 3)))
    return rows


def write_csv(path: Path, rows: Iterable[Row]) -> Path:
    lines = [f"{at!r},{subject},{quantity},{value!r}" for at, subject, quantity, value in rows]
    path.write_text("\n".join(["at,subject,quantity,value", *lines]) + "\n")
    return path
