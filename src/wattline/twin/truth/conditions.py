"""Conditions: what faults and the weather do to loops, supplies, racks and links, and when that changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from wattline.errors import UsageError
from wattline.spec.faults import Fault
from wattline.state import Plant, ResourceKind
from wattline.telemetry.fault_schedule import FaultSchedule
from wattline.telemetry.naming import find_subjects
from wattline.twin.truth.floor import Floor
from wattline.twin.truth.incident import IncidentKind
from wattline.twin.truth.loop import TrueLoop
from wattline.twin.truth.ports import HOUR_SECONDS, Surroundings, next_hour_at
from wattline.twin.truth.power import derate

_LOOK_AHEAD_HOURS = 24


class Conditions:
    """Faults fire after so many seconds since `began_at`; weather changes with the hour."""

    def __init__(
        self,
        floor: Floor,
        plant: Plant,
        faults: Sequence[Fault],
        surroundings: Mapping[str, Surroundings],
        began_at: float,
    ) -> None:
        for fault in faults:
            if fault.at.after is None:
                raise UsageError(
                    f"fault {fault.name}: begins at step {fault.at.step} of phase {fault.at.phase}, "
                    "and the twin runs no steps",
                    hint="say `at: {after: 10min}`: a time after the beginning",
                )
        self._floor, self._plant, self._began_at = floor, plant, began_at
        self._surroundings = surroundings
        subjects = _subjects(plant)
        self._schedule = FaultSchedule(faults, subjects)
        self._concerned = {
            kind: list(dict.fromkeys(_named(faults, kind, names))) for kind, names in subjects.items()
        }
        self._link_left: dict[str, float] = {}
        self._fault_slot = floor.agenda.add_slot(self._change_faults)
        self._hour_slot = floor.agenda.add_slot(self._change_hour)
        self._due_seconds = 0.0
        self._change_faults(began_at)
        if surroundings:
            self._change_hour(began_at)

    @property
    def is_changing(self) -> bool:
        """A fault is yet to begin or to end."""
        return self._due_seconds < math.inf

    def link_fraction(self, link: str) -> float:
        """What faults leave of a link."""
        return self._link_left.get(link, 1.0)

    def wakes(self, rack: str) -> bool:
        """Whether no fault keeps the nodes of a rack from waking."""
        return not self._schedule.effects("rack", rack, lambda fault: fault.wakes)

    def _change_faults(self, at: float) -> None:
        before, fired = self._schedule.active(), len(self._schedule.fired)
        self._schedule.move_to(self._due_seconds)
        active = self._schedule.active()
        for fault, _ in self._schedule.fired[fired:]:
            self._floor.tell(IncidentKind.FAULT, at, fault.name, [], [])
        for fault in before:
            if fault not in active:
                self._floor.tell(IncidentKind.MENDED, at, fault.name, [], [])
        self._apply(at)
        self._due_seconds = self._schedule.next_change()
        self._floor.agenda.set(self._fault_slot, self._began_at + self._due_seconds)

    def _apply(self, at: float) -> None:
        """Where several faults hit one thing, the worst of each kind counts."""
        floor, number_of = self._floor, self._plant.resource_number
        for name in self._concerned["loop"]:
            loop = floor.loops[number_of[name]]
            flows = self._schedule.effects("loop", name, lambda fault: fault.flow)
            _set_flow(floor, loop, min(flows, default=1.0), at)
            _set_supply(floor, loop, self._supply_celsius(loop, at), at)
        for kind in ("supply", "rack"):
            for name in self._concerned[kind]:
                left = self._schedule.effects(kind, name, lambda fault: fault.rating)
                derate(floor, floor.breakers[number_of[name]], min(left, default=1.0), at)
        for name in self._concerned["link"]:
            left = self._schedule.effects("link", name, lambda fault: fault.bandwidth)
            self._link_left[name] = min(left, default=1.0)
            for number, resource in enumerate(self._plant.resources):
                if resource.kind is ResourceKind.LINK and resource.name.rsplit(":", 1)[0] == name:
                    floor.touched_resources[number] = None

    def _change_hour(self, at: float) -> None:
        for loop in self._floor.loops.values():
            _set_supply(self._floor, loop, self._supply_celsius(loop, at), at)
        self._floor.agenda.set(self._hour_slot, self._next_weather_at(at))

    def _next_weather_at(self, at: float) -> float:
        """The next hour in which some loop is supplied otherwise than now; within a day, look again."""
        hour_at = next_hour_at(at)
        for _ in range(_LOOK_AHEAD_HOURS):
            for loop in self._floor.loops.values():
                if self._supply_celsius(loop, hour_at) != loop.supply_celsius:
                    return hour_at
            hour_at += HOUR_SECONDS
        return hour_at

    def _supply_celsius(self, loop: TrueLoop, at: float) -> float:
        warm = self._schedule.effects("loop", loop.loop.name, lambda fault: fault.supply_temperature)
        if warm:
            return max(warm)
        around = self._surroundings.get(self._plant.site_of_resource[loop.number])
        return loop.loop.supply_celsius if around is None else around.supply_celsius(loop.loop, at)


def _subjects(plant: Plant) -> dict[str, list[str]]:
    sites = plant.facility.sites
    return {
        "loop": [loop.name for site in sites for loop in site.loops],
        "supply": [supply.name for site in sites for supply in site.supplies],
        "rack": [rack.name for site in sites for rack in site.racks],
        "link": [link.name for link in plant.facility.links],
    }


def _named(faults: Sequence[Fault], kind: str, names: Sequence[str]) -> list[str]:
    return [find_subjects(fault.subject, names)[0] for fault in faults if getattr(fault, kind) is not None]


def _set_flow(floor: Floor, loop: TrueLoop, flow_fraction: float, at: float) -> None:
    """Every die on the loop follows it otherwise from now on, so all of them move."""
    if flow_fraction == loop.flow_fraction:
        return
    loop.move(at)
    for node in loop.nodes:
        node.move(at)
        node.rack.move(at)
    loop.set_flow(flow_fraction)
    for node in loop.nodes:
        floor.drive(node)
        floor.touched_nodes[node.number] = None
    floor.touched_resources[loop.number] = None
    floor.unfollowed[loop] = None


def _set_supply(floor: Floor, loop: TrueLoop, celsius: float, at: float) -> None:
    if celsius != loop.supply_celsius:
        loop.move(at)
        loop.set_supply(celsius)
        floor.touched_resources[loop.number] = None
        floor.unfollowed[loop] = None
