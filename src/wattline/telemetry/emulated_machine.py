"""Emulated machine: what do a node and its GPUs draw, and how do they throttle?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from wattline.facility import Device, Loop, Node
from wattline.physics import (
    HeatState,
    Pace,
    ThermalInputs,
    ThermalParameters,
    ThermalState,
    advance,
    least_cap_fraction,
    predict_gpu_watts,
    predict_heat_speed,
    predict_heat_state,
    predict_other_watts,
    predict_pace,
    thermal_parameters,
)
from wattline.telemetry.emulated_work import Work

# Chips of one model differ in how well they shed heat, so that the facility is not the model a policy
# predicts with; the width is assumed.
_SPREAD_FRACTION = 0.04
_SETTLED_KELVIN = 0.05


@dataclass(slots=True, eq=False)
class Gpu:
    """One emulated GPU. Its heat speed changes only at reviews, as firmware does it."""

    subject: str
    device: Device
    parameters: ThermalParameters
    celsius: float = 0.0
    heat_state: HeatState = HeatState.NORMAL
    heat_speed: float = 1.0
    work: Work | None = None
    awake: float = 1.0  # of its idle draw, what it takes: less once it was sent to sleep

    @property
    def watts(self) -> float:
        if self.heat_state is HeatState.SHUTDOWN:
            return 0.0
        if self.work is None:
            return self.awake * self.device.idle_watts
        # Measured work already shows a throttle that its process obeys; until it does, the clock bounds it.
        utilisation = min(self.work.utilisation, self.heat_speed)
        return predict_gpu_watts(self.device, utilisation, self.work.cap_fraction)

    @property
    def limit_watts(self) -> float:
        cap_fraction = self.work.cap_fraction if self.work else 1.0
        return max(cap_fraction, least_cap_fraction(self.device)) * self.device.limit_watts

    def pace(self, cap_fraction: float) -> Pace:
        return predict_pace(self.device, self.heat_speed, cap_fraction)

    def rest_celsius(self, coolant_celsius: float, flow_fraction: float) -> float:
        """Where the die comes to rest above this coolant."""
        return coolant_celsius + self.parameters.resistance(flow_fraction) * self.watts

    def move(self, coolant_celsius: float, inputs: ThermalInputs, dt_seconds: float) -> None:
        state = ThermalState(coolant_celsius=coolant_celsius, die_celsius=self.celsius)
        driven = replace(inputs, device_watts=self.watts)
        self.celsius = advance(self.parameters, state, driven, dt_seconds).die_celsius

    def review(self) -> None:
        """Look at the temperature and set the clock."""
        self.heat_state = predict_heat_state(self.device, self.celsius, self.heat_state)
        self.heat_speed = predict_heat_speed(self.device, self.celsius, self.heat_state)


@dataclass(slots=True, eq=False)
class Machine:
    """One emulated node."""

    name: str
    node: Node
    gpus: list[Gpu]
    works: list[Work] = field(default_factory=list)
    awake: float = 1.0  # as of its GPUs

    @property
    def other_watts(self) -> float:
        activity = min(1.0, sum(self._part_of(work) * work.utilisation for work in self.works))
        return self.awake * predict_other_watts(self.node.other_watts, activity)

    def set_awake(self, awake: float) -> None:
        self.awake = awake
        for gpu in self.gpus:
            gpu.awake = awake

    @property
    def watts(self) -> float:
        return self.other_watts + sum(gpu.watts for gpu in self.gpus)

    def charge(self, dt_seconds: float) -> None:
        """Add a span's energy to the attempts that used it."""
        other_watts = self.other_watts
        crowd = max(1.0, sum(self._part_of(work) for work in self.works))
        for work in self.works:
            work.joules += other_watts * self._part_of(work) / crowd * dt_seconds
        for gpu in self.gpus:
            if gpu.work is not None:
                gpu.work.joules += gpu.watts * dt_seconds

    def settle(self, coolant_celsius: float, flow_fraction: float) -> None:
        for gpu in self.gpus:
            gpu.celsius = gpu.rest_celsius(coolant_celsius, flow_fraction)

    def is_settled(self, coolant_celsius: float, flow_fraction: float) -> bool:
        """Nothing runs here and every die is at rest."""
        return not self.works and all(
            gpu.heat_state is HeatState.NORMAL
            and abs(gpu.celsius - gpu.rest_celsius(coolant_celsius, flow_fraction)) < _SETTLED_KELVIN
            for gpu in self.gpus
        )

    def _part_of(self, work: Work) -> float:
        """An attempt's part of the box: by GPUs where it has some, by CPUs otherwise."""
        gpus = work.placement[self.name]
        if gpus:
            return gpus / self.node.gpus
        return min(1.0, work.cpus / len(work.placement) / self.node.cpus) if self.node.cpus else 1.0


def build_machine(name: str, node: Node, loop: Loop, time_scale: float, seed: int) -> Machine:
    """A node with its GPUs, each a little better or worse cooled than its model, by lot."""
    gpus = []
    if node.device is not None:
        nominal = thermal_parameters(node.device, loop, time_scale)
        for number in range(node.gpus):
            subject = f"{name}/gpu{number}"
            factor = 1.0 + _SPREAD_FRACTION * _lot(seed, subject)
            parameters = replace(nominal, kelvin_per_watt=nominal.kelvin_per_watt * factor)
            gpus.append(Gpu(subject=subject, device=node.device, parameters=parameters))
    return Machine(name=name, node=node, gpus=gpus)


def _lot(seed: int, subject: str) -> float:
    """A number between -1 and 1 that belongs to this subject, whatever was built before it."""
    digest = hashlib.blake2b(f"{seed}/{subject}".encode(), digest_size=8).digest()
    return 2.0 * int.from_bytes(digest) / 2**64 - 1.0
