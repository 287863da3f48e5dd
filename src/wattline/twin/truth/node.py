"""Node, rack, work: what stands where, what it draws now, and what its own watts add to its heat.

Plain mutable records: with a hundred thousand GPUs, millions of changes pass through them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp

import msgspec

from wattline.facility import Rack
from wattline.physics import LimitedBy
from wattline.physics.cap_curve import OwnCurve
from wattline.physics.recirculation import predict_recirculation_kelvin
from wattline.twin.truth.breaker import Breaker
from wattline.twin.truth.energy import SiteEnergyMeter
from wattline.twin.truth.kind import SHUTDOWN, Kind
from wattline.twin.truth.loop import TrueLoop


@dataclass(slots=True, eq=False)
class TrueRack:
    """A rack, and in air how much its neighbours warm what it breathes."""

    rack: Rack
    breaker: Breaker
    supplies: tuple[Breaker, ...]
    loop: TrueLoop
    at: float
    nodes: list[TrueNode] = field(default_factory=list)
    neighbours: tuple[TrueRack, ...] = ()  # in air: whose exhaust reaches it, and whom its own reaches
    carriers: tuple[tuple[Breaker, float], ...] = ()  # and the part of its watts each carries now
    chain: tuple[tuple[Breaker, float], ...] = ()  # its own breaker and these
    reached: dict[int, None] = field(default_factory=dict)  # whose watts change with its own, by number
    own_loop: dict[int, None] = field(default_factory=dict)  # the same of its loop alone
    idle_watts: float = 0.0
    exhaust_watts: float = 0.0  # what it draws beyond idle
    breathed_watts: float = 0.0  # of its neighbours' exhaust
    rise_kelvin: float = 0.0
    lagged_rise_kelvin: float = 0.0  # as its dies feel it, who lag

    def hang_on(self, carriers: tuple[tuple[Breaker, float], ...]) -> None:
        self.carriers = carriers
        self.chain = ((self.breaker, 1.0), *carriers)
        above = (breaker.number for breaker, _ in carriers)
        self.reached = dict.fromkeys((self.loop.number, self.breaker.number, *above))
        self.own_loop = {self.loop.number: None}

    def lagged_rise_after(self, at: float) -> float:
        if not self.neighbours:
            return 0.0
        left = exp((self.at - at) / self.loop.die_seconds)
        return self.rise_kelvin + (self.lagged_rise_kelvin - self.rise_kelvin) * left

    def move(self, at: float) -> None:
        if at > self.at:
            self.lagged_rise_kelvin = self.lagged_rise_after(at)
            self.at = at

    def breathe(self, added_watts: float, at: float) -> None:
        """Take in what the neighbours blow out from now on, so much more than before."""
        if at > self.at:
            left = exp((self.at - at) / self.loop.die_seconds)
            self.lagged_rise_kelvin = self.rise_kelvin + (self.lagged_rise_kelvin - self.rise_kelvin) * left
            self.at = at
        self.breathed_watts += added_watts
        self.rise_kelvin = predict_recirculation_kelvin(self.breathed_watts)


@dataclass(slots=True, eq=False)
class TrueNode:
    """A node. Its hottest die stands at the loop's lagged coolant, its rack's rise and its own excess."""

    number: int
    name: str
    kind: Kind
    loop: TrueLoop
    rack: TrueRack
    site: SiteEnergyMeter
    kelvin_per_watt: float  # at nominal flow, 0 without a GPU
    at: float
    loads: list[Load] = field(default_factory=list)
    watts: float = 0.0
    idle_watts: float = 0.0  # the part that belongs to no job
    compute_watts: float = 0.0
    gpu_watts: float = 0.0  # of the hungriest GPU
    excess_kelvin: float = 0.0
    driven_kelvin: float = 0.0  # where the excess goes
    gpus_free: int = 0
    level: int = 0  # how far heat holds it back
    unpowered: bool = False
    is_asleep: bool = False  # sent to sleep
    room: int = -1

    @property
    def is_off(self) -> bool:
        return self.unpowered or self.level == SHUTDOWN

    @property
    def holders(self) -> list[Work]:
        return [load.work for load in self.loads]

    def move(self, at: float) -> None:
        if at > self.at:
            left, driven_kelvin = exp((self.at - at) / self.loop.die_seconds), self.driven_kelvin
            self.excess_kelvin = driven_kelvin + (self.excess_kelvin - driven_kelvin) * left
            self.at = at

    def celsius_after(self, at: float) -> float:
        """Its hottest die; a box without GPUs is as warm as what cools it."""
        loop, rack, driven_kelvin = self.loop, self.rack, self.driven_kelvin
        around_celsius = loop.lagged_after(at - loop.at)
        if rack.neighbours:
            around_celsius += rack.lagged_rise_after(at)
        left = exp((self.at - at) / loop.die_seconds)
        return around_celsius + (driven_kelvin + (self.excess_kelvin - driven_kelvin) * left)


class Load(msgspec.Struct, eq=False):
    """A job's part on one node."""

    work: Work
    node: TrueNode
    gpus: int
    gpu_watts: float
    watts: float  # of its GPUs and their part of the box


class Work(msgspec.Struct, eq=False):
    """One job as it runs: how hard, how fast, and what it has used."""

    key: str
    site: SiteEnergyMeter
    utilisation: float
    cap_fraction: float
    at: float
    curve: OwnCurve | None = None  # measured by itself; None: as its device has it
    loads: list[Load] = msgspec.field(default_factory=list)
    gpus: int = 0
    watts: float = 0.0
    joules: float = 0.0
    power_speed: float = 1.0
    heat_speed: float = 1.0
    limited_by: LimitedBy = LimitedBy.NONE
    lost: bool = False  # a node of it went off under it

    @property
    def pace(self) -> float:
        """Training is synchronous: the slowest node sets the pace of all."""
        return 0.0 if self.lost else min(self.power_speed, self.heat_speed)

    def find_pace(self) -> None:
        """Heat and a cap both lower the clock; the lower of the two is the one that counts."""
        power_speed = heat_speed = 1.0
        if self.curve is not None:
            power_speed = min(power_speed, self.curve.predict_speed(self.cap_fraction))
        is_capped = self.cap_fraction < 1.0 and self.curve is None
        for load in self.loads:
            node = load.node
            if not load.gpus:
                continue
            if is_capped:
                power_speed = min(power_speed, node.kind.power_speed(self.utilisation, self.cap_fraction))
            if node.level:
                heat_speed = min(heat_speed, node.kind.speeds[node.level])
        self.power_speed, self.heat_speed = power_speed, heat_speed
        if heat_speed < power_speed:
            self.limited_by = LimitedBy.HEAT
        else:
            self.limited_by = LimitedBy.POWER if power_speed < 1.0 else LimitedBy.NONE
