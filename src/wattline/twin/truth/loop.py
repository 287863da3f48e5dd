"""Loop: how warm is a loop's coolant, and is any die on it near a limit?

Superposition makes a start cheap. All dies of a loop lag behind its coolant alike, so one number, `lagged`,
carries that part for all of them; each node keeps only what its own watts add. A start then moves its loop
and its node, and no other die.
"""

from __future__ import annotations

from math import expm1, inf
from typing import TYPE_CHECKING

from wattline.facility import Loop
from wattline.physics import ThermalParameters, predict_capacity_watts
from wattline.physics.coolant import coolant_time_constant_seconds, is_stopped, predict_convection
from wattline.physics.lag import predict_chased

if TYPE_CHECKING:
    from wattline.twin.truth.node import TrueNode

_ROOMS = 128


class TrueLoop:
    """One loop. Temperatures are as of `at`; between changes they follow a closed form."""

    __slots__ = (
        "_joules_per_kelvin",
        "_kelvin_per_watt",
        "_nominal",
        "at",
        "cap_watts",
        "coolant_celsius",
        "coolant_seconds",
        "die_seconds",
        "film",
        "flow_fraction",
        "lagged_celsius",
        "least_room",
        "limited",
        "loop",
        "most_rise_kelvin",
        "nodes",
        "number",
        "rooms",
        "slot",
        "steady_celsius",
        "stopped",
        "supply_celsius",
        "watts",
    )

    def __init__(self, number: int, loop: Loop, nominal: ThermalParameters, at: float) -> None:
        self.number, self.loop = number, loop
        self.slot = -1  # on the agenda
        self._nominal = nominal
        self._joules_per_kelvin = nominal.loop.joules_per_kelvin
        self.nodes: list[TrueNode] = []
        self.limited: dict[TrueNode, None] = {}  # held back by heat, or off because of it
        # Nodes by how warm, in whole °C, the air or water around them may get before they throttle.
        self.rooms: list[dict[TrueNode, None]] = [{} for _ in range(_ROOMS)]
        self.least_room = _ROOMS - 1
        self.most_rise_kelvin = 0.0
        self.watts = 0.0
        self.supply_celsius = self.steady_celsius = loop.supply_celsius
        self.at = at
        self.set_flow(1.0)
        self.rest()

    def set_flow(self, flow_fraction: float) -> None:
        """Dies follow their coolant otherwise from now on, so all of them must have been moved to now."""
        self.flow_fraction = flow_fraction
        self.cap_watts = predict_capacity_watts(self.loop.capacity_watts, flow_fraction)
        self.stopped = is_stopped(flow_fraction)
        self.film = self._nominal.resistance(flow_fraction) / self._nominal.kelvin_per_watt
        self.die_seconds = self._nominal.resistance(flow_fraction) * self._nominal.joules_per_kelvin
        if self.stopped:
            self.coolant_seconds, self._kelvin_per_watt = inf, 0.0
        else:
            loop = self._nominal.loop
            self.coolant_seconds = coolant_time_constant_seconds(loop, flow_fraction)
            self._kelvin_per_watt = 1.0 / (loop.watts_per_kelvin * predict_convection(flow_fraction))
        self.add_heat(0.0)

    def rest(self) -> None:
        """Be where it ends."""
        self.coolant_celsius: float = self.steady_celsius
        self.lagged_celsius: float = self.steady_celsius

    def set_supply(self, celsius: float) -> None:
        self.supply_celsius = celsius
        self.add_heat(0.0)

    def add_heat(self, watts: float) -> None:
        """From now on; the loop must have been moved to now."""
        self.watts += watts
        if self.stopped:
            self.steady_celsius = inf if self.watts > 0.0 else self.coolant_celsius
        else:
            self.steady_celsius = self.supply_celsius + self.watts * self._kelvin_per_watt

    @property
    def kelvin_per_second(self) -> float:
        """How fast the coolant warms when nothing carries its heat away."""
        return self.watts / self._joules_per_kelvin

    def shape(self, seconds: float) -> tuple[float, float]:
        """What every die does in so long: the part it follows, and what the coolant's own move adds."""
        if self.stopped:
            followed = -expm1(-seconds / self.die_seconds)
            return followed, self.kelvin_per_second * (seconds - self.die_seconds * followed)
        followed, cascaded = predict_chased(seconds, self.coolant_seconds, self.die_seconds)
        return followed, (self.steady_celsius - self.coolant_celsius) * cascaded

    def coolant_after(self, seconds: float) -> float:
        if self.stopped:
            return self.coolant_celsius + self.kelvin_per_second * seconds
        gap_kelvin = self.steady_celsius - self.coolant_celsius
        return self.coolant_celsius - gap_kelvin * expm1(-seconds / self.coolant_seconds)

    def lagged_after(self, seconds: float) -> float:
        if seconds == 0.0:
            return self.lagged_celsius
        if self.stopped:
            followed, moved_kelvin = self.shape(seconds)
        else:
            followed, cascaded = predict_chased(seconds, self.coolant_seconds, self.die_seconds)
            moved_kelvin = (self.steady_celsius - self.coolant_celsius) * cascaded
        return self.lagged_celsius + (self.coolant_celsius - self.lagged_celsius) * followed + moved_kelvin

    def move(self, at: float) -> None:
        seconds = at - self.at
        if seconds > 0.0:
            coolant_celsius, lagged_celsius = self.coolant_celsius, self.lagged_celsius
            if self.stopped:
                followed, moved_kelvin = self.shape(seconds)
                self.coolant_celsius = self.coolant_after(seconds)
            else:  # what these two come to, with the gap worked out once
                gap_kelvin = self.steady_celsius - coolant_celsius
                followed, cascaded = predict_chased(seconds, self.coolant_seconds, self.die_seconds)
                moved_kelvin = gap_kelvin * cascaded
                self.coolant_celsius = coolant_celsius - gap_kelvin * expm1(-seconds / self.coolant_seconds)
            self.lagged_celsius = lagged_celsius + (
                (coolant_celsius - lagged_celsius) * followed + moved_kelvin
            )
            self.at = at

    def bound_celsius(self) -> float:
        """What no node's surroundings will exceed if nothing changes."""
        return max(self.lagged_celsius, self.coolant_celsius, self.steady_celsius) + self.most_rise_kelvin

    def is_calm(self) -> bool:
        """Even the node with the least room cannot reach its throttle limit."""
        if self.limited:
            return False
        bound_celsius = self.steady_celsius  # as `bound_celsius`, in one go
        if self.coolant_celsius > bound_celsius:
            bound_celsius = self.coolant_celsius
        if self.lagged_celsius > bound_celsius:
            bound_celsius = self.lagged_celsius
        bound_celsius += self.most_rise_kelvin
        if bound_celsius >= self.least_room:  # the roomier for who left since it was last looked at
            while self.least_room < _ROOMS - 1 and not self.rooms[self.least_room]:
                self.least_room += 1
        return bound_celsius < self.least_room

    def give_room(self, node: TrueNode, room: int) -> None:
        """Note how warm, in whole °C, it may get around a node."""
        room = min(max(room, 0), _ROOMS - 1)
        self.rooms[node.room].pop(node, None)
        self.rooms[room][node] = None
        node.room = room
        if room < self.least_room:
            self.least_room = room
