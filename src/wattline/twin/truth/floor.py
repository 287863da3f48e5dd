"""Floor: everything that stands there, and what follows when one node draws otherwise than before.

A change touches its node, its loop, its rack, the supplies above it, its site, and in air the racks beside
it. Never the other nodes of the loop.
"""

from __future__ import annotations

from wattline.physics import LimitedBy
from wattline.twin.truth.agenda import Agenda
from wattline.twin.truth.breaker import Breaker
from wattline.twin.truth.energy import SiteEnergyMeter
from wattline.twin.truth.incident import Incident, IncidentKind
from wattline.twin.truth.kind import SHUTDOWN
from wattline.twin.truth.loop import TrueLoop
from wattline.twin.truth.node import Load, TrueNode, TrueRack, Work
from wattline.twin.truth.ramp import RampMeter


class Floor:
    """Filled by `build_floor`; changed by what runs, by heat and by breakers."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.nodes: list[TrueNode] = []
        self.racks: dict[str, TrueRack] = {}
        self.loops: dict[int, TrueLoop] = {}
        self.breakers: dict[int, Breaker] = {}
        self.sites: dict[str, SiteEnergyMeter] = {}
        self.works: dict[str, Work] = {}
        self.ramps: dict[int, RampMeter] = {}  # of supplies that have a ramp
        self.unfollowed: dict[TrueLoop, None] = {}  # whose next crossing must be found anew
        self.uncalm: dict[TrueLoop, None] = {}  # where heat holds a node back, or will
        self.touched_nodes: dict[int, None] = {}  # both in the order in which they were
        self.touched_resources: dict[int, None] = {}
        self.incidents: list[Incident] = []
        self.throttled_gpu_seconds = {LimitedBy.POWER: 0.0, LimitedBy.HEAT: 0.0}
        self.shutdowns = 0
        self.trips = 0

    def settle(self, work: Work, at: float) -> None:
        """Count what a job has used up to now."""
        seconds = at - work.at
        if seconds > 0.0:
            work.joules += work.watts * seconds
            if work.limited_by is not LimitedBy.NONE and not work.lost:
                self.throttled_gpu_seconds[work.limited_by] += work.gpus * seconds
            work.at = at

    def tune(self, load: Load) -> None:
        """Find what a settled job's part on one node draws now."""
        work, node = load.work, load.node
        kind, utilisation = node.kind, work.utilisation
        if node.level:
            utilisation = min(utilisation, kind.speeds[node.level])
        if load.gpus:
            if work.curve is None:
                load.gpu_watts = kind.gpu_watts(utilisation, work.cap_fraction)
            else:
                load.gpu_watts = kind.own_watts(work.curve, utilisation, work.cap_fraction)
        watts = load.gpus * kind.part_watts(load.gpu_watts, utilisation)
        work.watts += watts - load.watts
        load.watts = watts

    def refresh(self, node: TrueNode, at: float) -> None:
        """Bring everything that a node's watts reach up to now, and go on with what it draws now."""
        kind, loop, rack, site, loads = node.kind, node.loop, node.rack, node.site, node.loads
        watts = idle_watts = gpu_watts = 0.0
        if node.unpowered or node.level == SHUTDOWN:
            pass
        elif node.is_asleep:
            watts = idle_watts = kind.asleep_box_watts
        elif not loads:
            watts = idle_watts = kind.empty_box_watts
            gpu_watts = kind.idle_gpu_watts
        else:
            gpu_watts = kind.idle_gpu_watts
            watts = idle_watts = kind.idle_box_watts - (kind.gpus - node.gpus_free) * kind.idle_part_watts
            for load in loads:
                watts += load.watts
                if load.gpu_watts > gpu_watts:
                    gpu_watts = load.gpu_watts
        added_watts = watts - node.watts
        if at > loop.at:
            loop.move(at)
        loop.add_heat(added_watts)
        if at > node.at:
            node.move(at)
        node.watts, node.gpu_watts = watts, gpu_watts
        self.drive(node)
        if at > site.at:
            site.move(at)
        site.watts += added_watts
        site.idle_watts += idle_watts - node.idle_watts
        node.idle_watts = idle_watts
        compute_watts = kind.compute_watts(watts)
        site.compute_watts += compute_watts - node.compute_watts
        node.compute_watts = compute_watts
        for breaker, share in rack.chain:
            carried_watts = breaker.watts + added_watts * share
            breaker.watts = carried_watts
            if carried_watts > breaker.alarm_watts:
                breaker.look(at)
        if self.ramps:
            self._note_ramps(rack, at)
        if rack.neighbours:
            self._blow(rack, at)
        self.unfollowed[loop] = None
        self.touched_nodes[node.number] = None

    def drive(self, node: TrueNode) -> None:
        """Where a node's own watts take its die, and how warm it may get around it."""
        if node.kelvin_per_watt:
            driven_kelvin = node.kelvin_per_watt * node.loop.film * node.gpu_watts
            node.driven_kelvin = driven_kelvin
            most_kelvin = max(node.excess_kelvin, driven_kelvin)
            room = int(node.kind.enters_celsius[0] - most_kelvin)
            if room != node.room:
                node.loop.give_room(node, room)

    def lose(self, node: TrueNode, at: float) -> list[str]:
        """A node goes off: what ran there is gone. Which jobs were hit."""
        keys = []
        for load in node.loads:
            work = load.work
            self.settle(work, at)
            work.watts -= load.watts
            work.loads.remove(load)
            if not work.lost:
                keys.append(work.key)
            work.lost = True
        node.loads.clear()
        node.gpus_free = node.kind.gpus
        return keys

    def tell(
        self, kind: IncidentKind, at: float, subject: str, keys: list[str], nodes: list[TrueNode]
    ) -> None:
        numbers = tuple(node.number for node in nodes)
        self.incidents.append(Incident(kind, at, subject, tuple(dict.fromkeys(keys)), numbers))

    def _note_ramps(self, rack: TrueRack, at: float) -> None:
        for breaker, _ in rack.carriers:
            ramp = self.ramps.get(breaker.number)
            if ramp is not None:
                ramp.note(at, breaker.watts)

    def _blow(self, rack: TrueRack, at: float) -> None:
        """A rack's exhaust warms what its neighbours breathe."""
        exhaust_watts = max(0.0, rack.breaker.watts - rack.idle_watts)
        added_watts = exhaust_watts - rack.exhaust_watts
        rack.exhaust_watts = exhaust_watts
        for warmed in rack.neighbours:
            loop = warmed.loop
            if at > loop.at:
                loop.move(at)
            warmed.breathe(added_watts, at)
            self.unfollowed[loop] = None
