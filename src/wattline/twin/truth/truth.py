"""Truth: the facility as it truly is while jobs come and go: watts, heat, breakers.

Event-driven and in closed form: between two changes nothing is computed, and a change costs the same
however large the facility is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wattline.errors import UsageError, WattlineError
from wattline.physics import LimitedBy
from wattline.physics.cap_curve import OwnCurve
from wattline.spec.faults import Fault
from wattline.state import Plant
from wattline.twin.truth.breaker import Breaker
from wattline.twin.truth.build import build_floor
from wattline.twin.truth.conditions import Conditions
from wattline.twin.truth.energy import EnergyTally
from wattline.twin.truth.heat import find_next_crossing_at
from wattline.twin.truth.incident import Incident, Touched
from wattline.twin.truth.kind import SHUTDOWN
from wattline.twin.truth.loop import TrueLoop
from wattline.twin.truth.lots import Lots
from wattline.twin.truth.node import Load, TrueNode, Work
from wattline.twin.truth.ports import Surroundings

Carrier = Breaker | TrueLoop  # what carries watts up to a cap

# Real GPUs exceed their rating by a tenth; more than this is a mistake in the workload.
_MOST_UTILISATION = 1.2
_TIME_CONSTANTS_TO_REST = 5.0
_UNTOUCHED = Touched({}, {}, {})


class Truth:
    """The facility as it truly is: watts, heat, breakers. Touched only where something changed."""

    def __init__(
        self,
        plant: Plant,
        *,
        seed: int,
        exact: bool,
        at: float,
        surroundings: Mapping[str, Surroundings] | None = None,
        faults: Sequence[Fault] = (),
        asleep: float = 1.0,
    ) -> None:
        """`asleep`: of its idle draw, what a node that nobody uses still takes."""
        around = surroundings or {}
        self.now = at  # the time last moved to
        self._floor = build_floor(plant, Lots(seed, exact), at, around, asleep)
        self._conditions = Conditions(self._floor, plant, faults, around, at)

    def load(
        self,
        key: str,
        nodes: Sequence[tuple[int, int]],
        utilisation: float,
        cap_fraction: float,
        at: float,
        curve: OwnCurve | None = None,
    ) -> None:
        """A job begins on so many GPUs of each node; one that is off takes it down at once."""
        floor = self._floor
        if at != self.now:
            self._come_to(at)
        _check_drive(key, utilisation, cap_fraction)
        if key in floor.works:
            raise UsageError(f"job {key}: runs already")
        site = floor.nodes[nodes[0][0]].site
        for number, gpus in nodes:
            node = floor.nodes[number]
            if not 0 <= gpus <= node.gpus_free:
                raise UsageError(f"job {key}: wants {gpus} GPUs of {node.name}, {node.gpus_free} are free")
            if node.site is not site:
                raise UsageError(f"job {key}: {node.name} is at another site than its first node")
        work = floor.works[key] = Work(key, site, utilisation, cap_fraction, at, curve)
        is_held_back = cap_fraction < 1.0 or curve is not None
        for number, gpus in nodes:
            node = floor.nodes[number]
            if node.unpowered or node.level == SHUTDOWN or node.is_asleep:
                work.lost = True
                continue
            load = Load(work, node, gpus, 0.0, 0.0)
            floor.tune(load)
            work.gpus += gpus
            work.loads.append(load)
            node.loads.append(load)
            node.gpus_free -= gpus
            floor.refresh(node, at)
            is_held_back = is_held_back or node.level > 0
        if is_held_back:  # otherwise it runs at full speed, as it was made
            work.find_pace()

    def change(
        self,
        key: str,
        at: float,
        *,
        utilisation: float | None = None,
        cap_fraction: float | None = None,
    ) -> None:
        """A job works harder or less hard, or under another cap, from now on."""
        floor = self._floor
        self._come_to(at)
        work = self._work(key)
        wanted = work.utilisation if utilisation is None else utilisation
        cap = work.cap_fraction if cap_fraction is None else cap_fraction
        _check_drive(key, wanted, cap)
        floor.settle(work, at)
        work.utilisation, work.cap_fraction = wanted, cap
        for load in work.loads:
            floor.tune(load)
            floor.refresh(load.node, at)
        work.find_pace()

    def unload(self, key: str, at: float) -> float:
        """A job is over; returns the joules it used: its GPUs and their part of the boxes around them."""
        floor = self._floor
        if at != self.now:
            self._come_to(at)
        work = self._work(key)
        floor.settle(work, at)
        for load in work.loads:
            node = load.node
            node.loads.remove(load)
            node.gpus_free += load.gpus
            floor.refresh(node, at)
        work.loads.clear()  # they point at each other: without this only the collector could free them
        del floor.works[key]
        work.site.ended_job_joules += work.joules
        return work.joules

    def send_to_sleep(self, node: int, at: float, *, asleep: bool) -> bool:
        """Put a node to sleep or rouse it; False where it runs something, or has no power to wake with."""
        self._come_to(at)
        known = self._floor.nodes[node]
        if known.loads or (known.is_off and not asleep):
            return False
        known.is_asleep = asleep
        self._floor.refresh(known, at)
        return True

    def wakes(self, node: int) -> bool:
        """Whether a sleeping node answers: a fault may keep its rack from waking."""
        return self._conditions.wakes(self._floor.nodes[node].rack.rack.name)

    def pace(self, key: str) -> float:
        """Speed relative to undisturbed, under its cap and heat; 0 when a node of it went off."""
        return self._work(key).pace

    def limited_by(self, key: str) -> LimitedBy:
        return self._work(key).limited_by

    def next_change_at(self) -> float:
        """When something next happens by itself; infinite where nothing will."""
        floor = self._floor
        if floor.unfollowed:
            self._follow()
        return self.now if floor.incidents else floor.agenda.next_at()

    @property
    def will_recover(self) -> bool:
        """A fault is yet to begin or to end, or what went off may come back."""
        if self._conditions.is_changing:
            return True
        return self.next_change_at() < math.inf and any(node.is_off for node in self._floor.nodes)

    def advance(self, at: float) -> list[Incident]:
        """Move to `at`, letting happen what is due by then; what happened, in order."""
        floor = self._floor
        if at < self.now:
            raise WattlineError(f"twin: time goes on only, got {at - self.now:g} s", hint="give it one clock")
        if floor.unfollowed:
            self._follow()
        agenda = floor.agenda
        while agenda.next_at() <= at:
            agenda.happen()
            self._follow()
        self.now = at
        if not floor.incidents:
            return []
        told, floor.incidents = floor.incidents, []
        return told

    def drain_touched(self) -> Touched:
        """Resources and nodes whose watts, heat or caps changed since last drained."""
        floor = self._floor
        resources, nodes = floor.touched_resources, floor.touched_nodes
        if not resources:
            if not nodes:
                return _UNTOUCHED
            if len(nodes) == 1:  # most often: what its rack reaches is known
                floor.touched_nodes = {}
                rack = floor.nodes[next(iter(nodes))].rack
                return Touched(rack.reached, rack.own_loop, nodes)
        loops = {number: None for number in resources if number in floor.loops} if resources else {}
        for number in nodes:
            rack = floor.nodes[number].rack
            loops[rack.loop.number] = None
            resources.update(rack.reached)
        floor.touched_resources, floor.touched_nodes = {}, {}
        return Touched(resources, loops, nodes)

    def resource_watts(self, resource: int) -> float:
        """What a rack or supply carries; a loop's heat."""
        return self.carrier(resource).watts

    def resource_cap_watts(self, resource: int) -> float:
        """What a rack or supply may carry now, or a loop may take with the flow that is left."""
        return self.carrier(resource).cap_watts

    def carrier(self, resource: int) -> Carrier:
        """What carries it: read only, and always as it is now."""
        return self._floor.breakers.get(resource) or self._floor.loops[resource]

    def node(self, number: int) -> TrueNode:
        """A node: read only, and always as it is now."""
        return self._floor.nodes[number]

    def loop(self, resource: int) -> TrueLoop:
        """A loop: read only, and always as it is now."""
        return self._floor.loops[resource]

    def link_fraction(self, link: str) -> float:
        """What faults leave of a link."""
        return self._conditions.link_fraction(link)

    def coolant_celsius(self, resource: int, at: float) -> float:
        loop = self._floor.loops[resource]
        return loop.coolant_after(at - loop.at)

    def supply_celsius(self, resource: int) -> float:
        return self._floor.loops[resource].supply_celsius

    def flow_fraction(self, resource: int) -> float:
        return self._floor.loops[resource].flow_fraction

    def settling_seconds(self, resource: int) -> float:
        """How long dies of a loop go on moving after a change."""
        return _TIME_CONSTANTS_TO_REST * self._floor.loops[resource].die_seconds

    def uncalm_loops(self) -> list[int]:
        """Loops on which heat holds some node back, or will if nothing changes."""
        floor = self._floor
        if floor.unfollowed:
            self._follow()
        return [loop.number for loop in floor.uncalm] if floor.uncalm else []

    def nodes_on(self, resource: int) -> list[int]:
        return [node.number for node in self._floor.loops[resource].nodes]

    def node_celsius(self, node: int, at: float) -> float:
        """A node's hottest die."""
        return self._floor.nodes[node].celsius_after(at)

    def node_gpu_watts(self, node: int) -> float:
        """A node's hungriest GPU."""
        return self._floor.nodes[node].gpu_watts

    def is_off(self, node: int) -> bool:
        return self._floor.nodes[node].is_off

    @property
    def tally(self) -> EnergyTally:
        """The account up to the time last moved to."""
        floor, now = self._floor, self.now
        running = dict.fromkeys(floor.sites.values(), 0.0)
        for work in floor.works.values():
            floor.settle(work, now)
            running[work.site] += work.joules
        for site in floor.sites.values():
            site.move(now)
        over = ((breaker.name, breaker.violation_seconds(now)) for breaker in floor.breakers.values())
        return EnergyTally(
            sites={name: site.tell(running[site]) for name, site in floor.sites.items()},
            cap_violation_seconds={name: seconds for name, seconds in over if seconds > 0.0},
            power_throttle_gpu_seconds=floor.throttled_gpu_seconds[LimitedBy.POWER],
            heat_throttle_gpu_seconds=floor.throttled_gpu_seconds[LimitedBy.HEAT],
            shutdowns=floor.shutdowns,
            trips=floor.trips,
        )

    def worst_ramps(self) -> dict[int, float]:
        """By supply that has a ramp, the most its load has risen by within a minute."""
        return {number: ramp.finish() for number, ramp in self._floor.ramps.items()}

    def spent_by(self, site: str, at: float) -> tuple[float, float]:
        """Dollars and kilograms of a site by then; looking changes nothing, not even how sums are rounded."""
        return self._floor.sites[site].spent_by(at)

    def _follow(self) -> None:
        """Find anew when a die next reaches a limit, on loops where something changed."""
        floor = self._floor
        for loop in floor.unfollowed:
            if loop.is_calm():
                if loop in floor.uncalm:
                    del floor.uncalm[loop]
                    floor.agenda.set(loop.slot, math.inf)
                continue
            crossing_at = find_next_crossing_at(floor, loop)
            floor.agenda.set(loop.slot, crossing_at)
            if loop.limited or crossing_at < math.inf:
                floor.uncalm[loop] = None
            else:
                floor.uncalm.pop(loop, None)
        floor.unfollowed.clear()

    def _come_to(self, at: float) -> None:
        """Nothing may have been due before."""
        if at != self.now:
            if not self.now < at <= self.next_change_at():
                raise WattlineError(
                    f"twin: asked about {at:.3f} at {self.now:.3f}, with a change due at "
                    f"{self.next_change_at():.3f}",
                    hint="advance to each change before going on",
                )
            self.now = at

    def _work(self, key: str) -> Work:
        work = self._floor.works.get(key)
        if work is None:
            raise UsageError(f"job {key}: does not run")
        return work


def _check_drive(key: str, utilisation: float, cap_fraction: float) -> None:
    if not (0.0 <= utilisation <= _MOST_UTILISATION and 0.0 < cap_fraction <= 1.0):
        raise UsageError(
            f"job {key}: utilisation lies between 0 and {_MOST_UTILISATION:g} and a cap above 0 and up to 1, "
            f"got {utilisation:g} and {cap_fraction:g}"
        )
