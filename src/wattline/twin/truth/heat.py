"""Heat: which node of a loop reaches a limit next, and what does its firmware then do?

Firmware lowers clocks in steps above the throttle limit. Its controller finds the step at which the die
stays, rather than hunting up and down: a step is taken when the die reaches it, as far as it takes for the
die to settle, and given back when the die is cooler and would settle there. So a node that is held back by
heat causes no events while nothing else changes. While coolant still warms, firmware looks no further ahead
than its die follows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wattline.physics.lag import predict_ramp_turn_seconds, predict_turn_seconds
from wattline.twin.truth.floor import Floor
from wattline.twin.truth.incident import IncidentKind
from wattline.twin.truth.kind import HEAT_STEPS, SHUTDOWN
from wattline.twin.truth.loop import TrueLoop
from wattline.twin.truth.node import TrueNode

# Dies this near to a limit when another one reaches it count as there: a crowd is one event, not a hundred.
_NEAR_KELVIN = 0.02
_TOLERANCE_SECONDS = 1e-6
_DOUBLINGS = 64


def find_next_crossing_at(floor: Floor, loop: TrueLoop) -> float:
    """When a die on this loop next reaches a limit, or is cool enough to get speed back.

    Asked where a loop is not calm: elsewhere none ever does.
    """
    around = (loop.lagged_celsius, loop.coolant_celsius, loop.steady_celsius)
    warmest_celsius, coolest_celsius = max(around), min(around)
    soonest_seconds = math.inf
    for node in near_limit(floor, loop):
        kind, level, rack = node.kind, node.level, node.rack
        own = (node.excess_kelvin, node.driven_kelvin)
        rise = (rack.lagged_rise_after(loop.at), rack.rise_kelvin)
        celsius = loop.lagged_celsius + own[0] + rise[0]
        # Bounds first: most nodes cannot get to a mark, whatever the time.
        if not node.is_off and warmest_celsius + max(own) + max(rise) >= kind.enters_celsius[level]:
            climb = _Path(loop, node, celsius, kind.enters_celsius[level], 1.0)
            soonest_seconds = climb.seconds_if_before(soonest_seconds)
        if (
            level
            and coolest_celsius + min(own) + min(rise) <= kind.leaves_celsius[level]
            and (level > HEAT_STEPS or settles_at(node, loop.steady_celsius) < level)
        ):
            fall = _Path(loop, node, celsius, kind.leaves_celsius[level], -1.0)
            soonest_seconds = fall.seconds_if_before(soonest_seconds)
        if soonest_seconds == 0.0:
            break
    return loop.at + soonest_seconds


def near_limit(floor: Floor, loop: TrueLoop) -> list[TrueNode]:
    """Nodes that might reach a limit if nothing changes, and those that already have."""
    bound_celsius = loop.bound_celsius()
    rooms = loop.rooms if bound_celsius == math.inf else loop.rooms[: max(0, int(bound_celsius)) + 1]
    found = dict.fromkeys([node for room in rooms for node in room]) | loop.limited
    for node in found:
        if node.at < loop.at:
            node.move(loop.at)
            floor.drive(node)  # what has cooled since it was last looked at has more room
    return [node for node in found if node.room <= bound_celsius or node.level]


def settles_at(node: TrueNode, coolant_celsius: float) -> int:
    """The mildest step at which the die would stay below the next one, in coolant this warm."""
    around_celsius = coolant_celsius + node.rack.rise_kelvin
    kelvin_per_watt = node.kelvin_per_watt * node.loop.film
    kind = node.kind
    for level in range(HEAT_STEPS):
        gpu_watts = kind.idle_gpu_watts
        for load in node.loads:
            utilisation = load.work.utilisation
            if level:
                utilisation = min(utilisation, kind.speeds[level])
            if load.gpus:
                gpu_watts = max(gpu_watts, kind.gpu_watts(utilisation, load.work.cap_fraction))
        if around_celsius + kelvin_per_watt * gpu_watts < kind.enters_celsius[level]:
            return level
    return HEAT_STEPS


def review(floor: Floor, loop: TrueLoop, at: float) -> None:
    """A die on this loop reached a limit: set the clocks of all that did."""
    loop.move(at)
    paces: dict[str, float] = {}
    lost: list[str] = []
    went_off, came_on = [], []
    for node in near_limit(floor, loop):
        level = _next_level(node, node.celsius_after(at))
        if level == node.level or (node.unpowered and level > node.level):
            continue
        if level == SHUTDOWN:
            went_off.append(node)
            lost += floor.lose(node, at)
            floor.shutdowns += 1
        elif node.level == SHUTDOWN and not node.unpowered:
            came_on.append(node)
        for work in node.holders:
            paces.setdefault(work.key, work.pace)
        _set_level(floor, node, level, at)
    changed = [key for key, pace in paces.items() if floor.works[key].pace != pace]
    if changed:
        floor.tell(IncidentKind.PACE, at, loop.loop.name, changed, [])
    if went_off:
        floor.tell(IncidentKind.OFF, at, loop.loop.name, lost, went_off)
    if came_on:
        floor.tell(IncidentKind.ON, at, loop.loop.name, [], came_on)
    floor.unfollowed[loop] = None


def _next_level(node: TrueNode, celsius: float) -> int:
    kind, loop, level = node.kind, node.loop, node.level
    if level == SHUTDOWN:
        return 0 if celsius <= kind.leaves_celsius[level] + _NEAR_KELVIN else SHUTDOWN
    reached = 0  # the mildest step that this temperature allows
    while celsius >= kind.enters_celsius[reached] - _NEAR_KELVIN:
        reached += 1
    if reached > HEAT_STEPS and reached > level:
        return reached
    if reached > level:
        soon_celsius = min(loop.steady_celsius, loop.coolant_after(loop.die_seconds))
        return max(reached, settles_at(node, soon_celsius))
    if level and celsius <= kind.leaves_celsius[level] + _NEAR_KELVIN:
        return min(level, max(reached, settles_at(node, loop.steady_celsius)))
    return level


def _set_level(floor: Floor, node: TrueNode, level: int, at: float) -> None:
    node.level = level
    if level:
        node.loop.limited[node] = None
    else:
        node.loop.limited.pop(node, None)
    for load in node.loads:
        floor.settle(load.work, at)
        load.work.find_pace()
        floor.tune(load)
    floor.refresh(node, at)


@dataclass(slots=True)
class _Path:
    """One die's way to a mark, upwards (sign 1) or downwards (-1), in seconds from the loop's time."""

    loop: TrueLoop
    node: TrueNode
    celsius: float
    mark_celsius: float
    sign: float

    def seconds_if_before(self, soonest_seconds: float) -> float:
        """When it gets there, if that is before `soonest_seconds`; otherwise that.

        A path turns at most once. Either it ends beyond the mark and, once there, stays; or it can only
        touch the mark before it turns.
        """
        loop, sign = self.loop, self.sign
        if sign * (self.celsius - self.mark_celsius) >= 0.0:
            return 0.0
        added_kelvin = self.node.driven_kelvin + self.node.rack.rise_kelvin
        pull_kelvin = loop.coolant_celsius + added_kelvin - self.celsius
        late_seconds = soonest_seconds
        if sign * (loop.steady_celsius + added_kelvin - self.mark_celsius) <= 0.0:
            late_seconds = min(soonest_seconds, _turns_after_seconds(loop, pull_kelvin))
        elif soonest_seconds == math.inf:
            late_seconds = self._far_enough_seconds(pull_kelvin)
        if late_seconds in (0.0, math.inf) or not self._is_there(pull_kelvin, late_seconds):
            return soonest_seconds
        early_seconds = 0.0
        while late_seconds - early_seconds > _TOLERANCE_SECONDS:
            middle_seconds = 0.5 * (early_seconds + late_seconds)
            if self._is_there(pull_kelvin, middle_seconds):
                late_seconds = middle_seconds
            else:
                early_seconds = middle_seconds
        return late_seconds

    def _is_there(self, pull_kelvin: float, seconds: float) -> bool:
        followed, moved_kelvin = self.loop.shape(seconds)
        celsius = self.celsius + pull_kelvin * followed + moved_kelvin
        return self.sign * (celsius - self.mark_celsius) >= 0.0

    def _far_enough_seconds(self, pull_kelvin: float) -> float:
        """It ends beyond the mark: some time at which it is there; never, if only a float's width beyond."""
        seconds = self.loop.die_seconds
        for _ in range(_DOUBLINGS):
            if self._is_there(pull_kelvin, seconds):
                return seconds
            seconds *= 2.0
        return math.inf


def _turns_after_seconds(loop: TrueLoop, pull_kelvin: float) -> float:
    if loop.stopped:
        return predict_ramp_turn_seconds(pull_kelvin, loop.kelvin_per_second, loop.die_seconds)
    gap_kelvin = loop.steady_celsius - loop.coolant_celsius
    return predict_turn_seconds(pull_kelvin, gap_kelvin, loop.coolant_seconds, loop.die_seconds)
