"""Emulated loop: how do a coolant and the machines on it move together?

Cost follows the machines that are awake: those with work, and those still coming to rest. The others
only add their idle heat, and their dies stand above the coolant by what idling takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from wattline.facility import Loop
from wattline.physics import (
    ThermalInputs,
    advance_coolant,
    loop_parameters,
    predict_steady_coolant,
)
from wattline.telemetry.emulated_machine import Gpu, Machine

# Devices look at their own temperature this often, on a fixed grid: how often the facility is asked to
# advance then changes nothing.
_REVIEW_SECONDS = 0.1
_REVIEW_SLACK = 1e-4  # of one review: times since the epoch are only good to a fraction of a microsecond


class EmulatedLoop:
    """One cooling loop with its machines, at thermal rest when it begins."""

    def __init__(self, name: str, loop: Loop, machines: list[Machine], time_scale: float) -> None:
        self.name = name
        self.loop = loop
        self.machines = {machine.name: machine for machine in machines}
        self.flow_fraction = 1.0
        self.supply_celsius = loop.supply_celsius
        self._parameters = loop_parameters(loop, time_scale)
        self._awake: dict[str, Machine] = {}
        self._asleep_watts = sum(machine.watts for machine in machines)
        self.coolant_celsius = predict_steady_coolant(self._parameters, self._inputs())

    @property
    def heat_watts(self) -> float:
        return self._asleep_watts + sum(machine.watts for machine in self._awake.values())

    def set_conditions(self, flow_fraction: float, supply_celsius: float) -> None:
        """Change what the plant gives. Every die on the loop then moves, so every machine wakes."""
        if (flow_fraction, supply_celsius) != (self.flow_fraction, self.supply_celsius):
            for name in self.machines:
                self.wake(name)
            self.flow_fraction, self.supply_celsius = flow_fraction, supply_celsius

    def wake(self, name: str) -> Machine:
        machine = self.machines[name]
        if name not in self._awake:
            machine.settle(self.coolant_celsius, self.flow_fraction)
            self._asleep_watts -= machine.watts
            self._awake[name] = machine
        return machine

    def advance(self, begin: float, end: float) -> None:
        """Move from one time to another; both count from when the facility began."""
        now = begin
        while now < end and self._awake:
            review = math.floor(now / _REVIEW_SECONDS + _REVIEW_SLACK) + 1
            until = min(end, review * _REVIEW_SECONDS)
            self._move(until - now)
            if until / _REVIEW_SECONDS + _REVIEW_SLACK >= review:
                self._review()
            now = until
        if now < end:  # nothing that could throttle: one closed form covers the rest
            self._move(end - now)

    def celsius(self) -> Iterator[tuple[Gpu, float]]:
        """Every GPU's temperature, of those at rest too."""
        for name, machine in self.machines.items():
            awake = name in self._awake
            for gpu in machine.gpus:
                rest_celsius = gpu.rest_celsius(self.coolant_celsius, self.flow_fraction)
                yield gpu, gpu.celsius if awake else rest_celsius

    def _move(self, dt_seconds: float) -> None:
        inputs = self._inputs()
        for machine in self._awake.values():
            machine.charge(dt_seconds)
            for gpu in machine.gpus:
                gpu.move(self.coolant_celsius, inputs, dt_seconds)
        self.coolant_celsius = advance_coolant(self._parameters, self.coolant_celsius, inputs, dt_seconds)

    def _review(self) -> None:
        for name, machine in list(self._awake.items()):
            for gpu in machine.gpus:
                gpu.review()
            if machine.is_settled(self.coolant_celsius, self.flow_fraction):
                del self._awake[name]
                self._asleep_watts += machine.watts

    def _inputs(self) -> ThermalInputs:
        return ThermalInputs(
            supply_celsius=self.supply_celsius,
            flow_fraction=self.flow_fraction,
            loop_watts=self.heat_watts,
        )
