"""Emulated facility: what would its meters say while real processes work as they do?

Heat and power follow the CPU time that the attempts really use; the way back is `speed`, the duty at
which a throttled attempt should run. Nothing here reads a clock: time arrives with each call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wattline.errors import UsageError, WattlineError
from wattline.facility import Facility, Site
from wattline.physics import LimitedBy, Pace
from wattline.spec.faults import Fault
from wattline.telemetry.emulated_loop import EmulatedLoop
from wattline.telemetry.emulated_machine import Machine, build_machine
from wattline.telemetry.emulated_readings import read_link, read_loop, read_site
from wattline.telemetry.emulated_work import Work
from wattline.telemetry.fault_schedule import FaultSchedule
from wattline.telemetry.naming import find_subjects, qualify
from wattline.telemetry.reading import Reading

_UNLIMITED = Pace(1.0, LimitedBy.NONE)


class EmulatedFacility:
    """The sites of a facility whose telemetry is emulated, at thermal rest when they begin."""

    def __init__(self, facility: Facility, faults: Sequence[Fault], seed: int, began_at: float) -> None:
        self._sites = [site for site in facility.sites if site.telemetry == "emulated"]
        self._links = facility.links
        self._sleep_of = {site.name: site.sleep for site in self._sites}
        self._began_at = began_at
        self._now = 0.0
        self._loops = {loop.name: loop for site in self._sites for loop in _build_loops(site, seed)}
        self._loop_of_node = {node: loop for loop in self._loops.values() for node in loop.machines}
        self._works: dict[str, Work] = {}
        self._joules_before: dict[str, float] = {}
        self._schedule = FaultSchedule(
            faults,
            {
                "loop": list(self._loops),
                "supply": [qualify(site.name, each.name) for site in self._sites for each in site.supplies],
                "rack": [qualify(site.name, each.name) for site in self._sites for each in site.racks],
                "link": [link.name for link in self._links],
            },
        )
        self._apply_faults_by(0.0)

    @property
    def faults_fired(self) -> list[tuple[Fault, float]]:
        """Every fault that has begun, and when."""
        return [(fault, self._began_at + at) for fault, at in self._schedule.fired]

    def active_faults(self) -> list[Fault]:
        return self._schedule.active()

    def occupy(self, attempt: str, placement: Mapping[str, int], cpus: float) -> None:
        """Put an attempt on nodes, each with how many of its GPUs; it takes the first that are free.

        It begins at the time last advanced to, as every call without a time of its own does.
        """
        if attempt in self._works:
            raise UsageError(f"emulated facility: attempt {attempt} is placed already")
        if cpus <= 0:
            raise UsageError(f"emulated facility: attempt {attempt} needs more than 0 CPUs, got {cpus:g}")
        chosen = {self._node(name): gpus for name, gpus in placement.items()}
        for name, gpus in chosen.items():
            free = sum(gpu.work is None for gpu in self._loop_of_node[name].machines[name].gpus)
            if not 0 <= gpus <= free:
                raise UsageError(
                    f"emulated facility: attempt {attempt} wants {gpus} GPUs of {name}, {free} are free"
                )
        work = Work(attempt, chosen, cpus, counted_at=self._began_at + self._now)
        self._works[attempt] = work
        for name, gpus in chosen.items():
            machine = self._loop_of_node[name].wake(name)
            machine.works.append(work)
            for gpu in [gpu for gpu in machine.gpus if gpu.work is None][:gpus]:
                gpu.work = work

    def release(self, attempt: str) -> None:
        """Free what an attempt occupied; its energy stays known."""
        work = self._work(attempt)
        for machine in self._machines(work):
            machine.works.remove(work)
            for gpu in machine.gpus:
                if gpu.work is work:
                    gpu.work = None
        del self._works[attempt]
        self._joules_before[attempt] = self._joules_before.get(attempt, 0.0) + work.joules

    def observe_cpu(self, attempt: str, cpu_seconds_total: float, at: float) -> None:
        """Tell how much CPU time an attempt's processes have used since it was placed."""
        self._work(attempt).count(cpu_seconds_total, at)

    def set_power_cap(self, attempt: str, fraction: float) -> None:
        """Cap every GPU of an attempt at this share of its limit."""
        if not 0.0 < fraction <= 1.0:
            raise UsageError(f"emulated facility: a power cap lies above 0 and up to 1, got {fraction:g}")
        self._work(attempt).cap_fraction = fraction

    def send_to_sleep(self, node: str, *, asleep: bool) -> bool:
        """Put a node to sleep or rouse it; False where it cannot: it runs something, or does not wake."""
        loop = self._loop_of_node.get(node)
        machine = None if loop is None else loop.machines[node]
        sleep = self._sleep_of.get(node.partition("/")[0])
        if loop is None or machine is None or machine.works or sleep is None:
            return False
        rack = qualify(node.partition("/")[0], machine.node.rack)
        if not asleep and self._schedule.effects("rack", rack, lambda fault: fault.wakes):
            return False
        loop.wake(node).set_awake(sleep.asleep if asleep else 1.0)
        return True

    def observe_step(self, phase: str, step: int) -> None:
        """Tell which step a phase has reached; faults that wait for it begin now."""
        if self._schedule.reach_step(phase, step):
            self._set_conditions()

    def advance(self, at: float) -> None:
        """Move everything to `at`, stopping where a fault begins or ends."""
        target = at - self._began_at
        if target < self._now:
            raise WattlineError(
                f"emulated facility: time goes on only, got {target:g} s after {self._now:g} s",
                hint="give it one monotonic clock",
            )
        while self._now < target:
            until = min(target, self._schedule.next_change())
            for loop in self._loops.values():
                loop.advance(self._now, until)
            self._apply_faults_by(until)

    def readings(self, at: float) -> list[Reading]:
        """What every meter says at `at`."""
        self.advance(at)
        found: list[Reading] = []
        for site in self._sites:
            loops = [self._loops[qualify(site.name, loop.name)] for loop in site.loops]
            for loop in loops:
                found += read_loop(loop, at)
            machines = {name: machine for loop in loops for name, machine in loop.machines.items()}
            found += read_site(site, machines, self._schedule, at)
        for link in self._links:
            found += read_link(link, self._schedule, at)
        return found

    def speed(self, attempt: str) -> float:
        """The duty at which the attempt should run now; 1 where nothing holds it back."""
        return self._pace(attempt).speed

    def limited_by(self, attempt: str) -> LimitedBy:
        return self._pace(attempt).limited_by

    def energy_joules(self, attempt: str) -> float:
        """IT energy so far: its GPUs and its part of what the boxes around them draw."""
        work = self._works.get(attempt)
        if work is None and attempt not in self._joules_before:
            raise UsageError(f"emulated facility: attempt {attempt} was never placed")
        return self._joules_before.get(attempt, 0.0) + (work.joules if work else 0.0)

    def _pace(self, attempt: str) -> Pace:
        """Training is synchronous: the slowest GPU sets the pace of all."""
        work = self._work(attempt)
        paces = [
            gpu.pace(work.cap_fraction)
            for machine in self._machines(work)
            for gpu in machine.gpus
            if gpu.work is work
        ]
        return min(paces, key=lambda pace: pace.speed, default=_UNLIMITED)

    def _apply_faults_by(self, now: float) -> None:
        self._now = now
        if self._schedule.move_to(now):
            self._set_conditions()

    def _set_conditions(self) -> None:
        """Where several faults hit one loop, the worst of each kind counts."""
        for name, loop in self._loops.items():
            flows = self._schedule.effects("loop", name, lambda fault: fault.flow)
            supplies = self._schedule.effects("loop", name, lambda fault: fault.supply_temperature)
            loop.set_conditions(min(flows, default=1.0), max(supplies, default=loop.loop.supply_celsius))

    def _work(self, attempt: str) -> Work:
        if attempt not in self._works:
            raise UsageError(f"emulated facility: attempt {attempt} is not placed")
        return self._works[attempt]

    def _machines(self, work: Work) -> list[Machine]:
        return [self._loop_of_node[name].machines[name] for name in work.placement]

    def _node(self, name: str) -> str:
        found = find_subjects(name, self._loop_of_node)
        if len(found) != 1:
            raise UsageError(
                f"emulated facility: {name} names {len(found)} nodes, one is needed",
                hint=f"known nodes: {', '.join(sorted(self._loop_of_node)[:20])}",
            )
        return found[0]


def _build_loops(site: Site, seed: int) -> list[EmulatedLoop]:
    loops = []
    for loop in site.loops:
        machines = [
            build_machine(qualify(site.name, node.name), node, loop, site.thermal_time_scale, seed)
            for rack in site.racks
            if rack.loop == loop.name
            for node in rack.nodes
        ]
        name = qualify(site.name, loop.name)
        loops.append(EmulatedLoop(name, loop, machines, site.thermal_time_scale))
    return loops
