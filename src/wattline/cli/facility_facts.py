"""How full is a facility? Its ledger where this state folder runs on it, its idle draw anywhere else."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from wattline.facility import Facility, Link, Loop, Node, Rack, Site, Supply, TrafficClass
from wattline.live import hash_data
from wattline.plane.finding import open_if_any
from wattline.plane.moments import iso
from wattline.spec import find_facility, read_facility
from wattline.state import Snapshot, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How much of one finite thing is taken."""

    used: float
    cap: float

    @property
    def fraction(self) -> float:
        return self.used / self.cap if self.cap > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A facility with its numbers of one moment; `at` is None where nothing has run on it here."""

    facility: Facility
    state: State
    at: float | None
    reading_max_age_seconds: float = 0.0

    def level(self, name: str) -> Level:
        """Of a supply, a loop, a rack, a storage, or a link's class as `link:class`."""
        number = self.state.plant.resource_number[name]
        if self.at is None:
            resource = self.state.plant.resources[number]
            return Level(used=float(resource.idle), cap=float(resource.cap))
        snapshot = Snapshot(self.state, self.at)
        return Level(
            used=snapshot.used(number, self.reading_max_age_seconds), cap=float(snapshot.cap(number))
        )

    def gpus_free(self, node: Node) -> int:
        return self.state.ledger.gpus_free[self.state.plant.node_number[node.name]]

    def gpu_celsius(self, node: Node) -> float | None:
        """Of its hottest GPU."""
        reading = self.state.conditions.node_celsius.get(self.state.plant.node_number[node.name])
        return None if reading is None else reading[0]

    def gpu_watts(self, node: Node) -> float | None:
        """Of its hungriest GPU."""
        reading = self.state.conditions.node_gpu_watts.get(self.state.plant.node_number[node.name])
        return None if reading is None else reading[0]

    def coolant_celsius(self, loop: Loop) -> float | None:
        reading = self.state.conditions.coolant_celsius.get(self.state.plant.resource_number[loop.name])
        return None if reading is None else reading[0]

    def flow_fraction(self, loop: Loop) -> float | None:
        return self.state.conditions.flow_fraction.get(self.state.plant.resource_number[loop.name])


def read_facts(name_or_path: str) -> Facts:
    """Live numbers only if the state folder has adopted this very document."""
    facility = read_facility(name_or_path)
    digest = f"sha256:{hash_data(find_facility(name_or_path))}"
    with open_if_any() as view:
        if view is not None and view.state.adopted.get("facility_sha256") == digest:
            max_age = view.session.policy().thresholds.reading_max_age
            read_at = [at for at in view.state.ledger.drawn_at if at is not None]
            # Where nobody conducts, nothing is read any more: show it as it was read last.
            at = view.at if view.writer is not None else max(read_at, default=view.at)
            return Facts(facility=facility, state=view.state, at=at, reading_max_age_seconds=max_age)
    return Facts(facility=facility, state=State(facility), at=None)


def describe_facts(facts: Facts) -> dict[str, object]:
    """All of it for programs: nothing is folded."""
    return {
        "facility": facts.facility.name,
        "source": facts.facility.source,
        "emulated": facts.facility.emulated,
        "gpus": facts.facility.gpus,
        "as_of": iso(facts.at),
        "sites": [_site(facts, site) for site in facts.facility.sites],
        "links": [_link(facts, link) for link in facts.facility.links],
        "not_estimated": [] if facts.at is not None else ["as_of"],
    }


def _site(facts: Facts, site: Site) -> dict[str, object]:
    return {
        "name": site.name,
        "region": site.region,
        "emulated": site.telemetry == "emulated",
        "telemetry": site.telemetry,
        "engine": site.engine,
        "pue": site.pue,
        "usd_per_kwh": site.usd_per_kwh,
        "grams_co2_per_kwh": site.grams_co2_per_kwh,
        "supplies": [_supply(facts, supply) for supply in site.supplies],
        "loops": [_loop(facts, loop) for loop in site.loops],
        "storage": {
            "name": site.storage.name,
            "used_bytes_per_second": facts.level(site.storage.name).used,
            "cap_bytes_per_second": facts.level(site.storage.name).cap,
            "capacity_bytes": site.storage.capacity_bytes,
        },
        "racks": [_rack(facts, rack) for rack in site.racks],
        "cloud": None if site.cloud is None else asdict(site.cloud),
    }


def _watts(facts: Facts, name: str) -> dict[str, object]:
    level = facts.level(name)
    return {"used_watts": level.used, "cap_watts": level.cap}


def _supply(facts: Facts, supply: Supply) -> dict[str, object]:
    rating = {"parent": supply.parent, "rating_watts": supply.rating_watts}
    return {"name": supply.name, **rating, **_watts(facts, supply.name)}


def _loop(facts: Facts, loop: Loop) -> dict[str, object]:
    return {
        "name": loop.name,
        "kind": loop.kind,
        "supply_celsius": loop.supply_celsius,
        "coolant_celsius": facts.coolant_celsius(loop),
        "flow_fraction": facts.flow_fraction(loop),
        **_watts(facts, loop.name),
    }


def _rack(facts: Facts, rack: Rack) -> dict[str, object]:
    return {
        "name": rack.name,
        "row": rack.row,
        "supplies": rack.supplies,
        "loop": rack.loop,
        "switch": rack.switch,
        **_watts(facts, rack.name),
        "nodes": [
            {
                "name": node.name,
                "gpu": node.device.name if node.device else None,
                "gpus": node.gpus,
                "gpus_free": facts.gpus_free(node),
                "cpus": node.cpus,
                "tier": node.tier,
                "gpu_celsius": facts.gpu_celsius(node),
                "gpu_watts": facts.gpu_watts(node),
            }
            for node in rack.nodes
        ],
    }


def _link(facts: Facts, link: Link) -> dict[str, object]:
    classes = {}
    for traffic in TrafficClass:
        level = facts.level(f"{link.name}:{traffic}")
        classes[traffic.value] = {"used_bits_per_second": level.used, "cap_bits_per_second": level.cap}
    return {
        "name": link.name,
        "between": link.between,
        "bits_per_second": link.bits_per_second,
        "latency_seconds": link.latency_seconds,
        "classes": classes,
    }
