"""The facility as the ledger sees it: numbered nodes and resources, and what hangs on what.

Built once from a Facility; decisions then work with small integers instead of names.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from wattline.enums import plain_members
from wattline.facility import Cloud, Device, Facility, Link, Loop, Node, Rack, Site, TrafficClass

if TYPE_CHECKING:
    from wattline.state.claim import Claim


@plain_members
class ResourceKind(StrEnum):
    RACK = "power.rack"
    SUPPLY = "power.supply"
    LOOP = "cooling.loop"
    LINK = "network.link"
    STORAGE = "storage.throughput"


POWER = frozenset({ResourceKind.RACK, ResourceKind.SUPPLY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One finite thing. Amounts are whole watts or bits (bytes, for storage) per second."""

    name: str
    kind: ResourceKind
    cap: int
    idle: int = 0  # drawn when nothing runs
    worst: int = 0  # drawn when everything runs flat out


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A node with its numbers."""

    node: Node
    site: Site
    rack: Rack
    loop: Loop
    loop_resource: int
    power: tuple[tuple[int, float], ...]  # resource and the share of the node's watts it must carry
    pool: int
    bay: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bay:
    """The like nodes of one rack: numbered one after the other, they fit or fail alike."""

    rack_resource: int
    loop_resource: int
    pool: int
    first: int  # the number of its first node
    ends_before: int  # the number after its last node
    cooling: int  # which of Plant.coolings its devices have; -1 without a device
    zone: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """The bays of one pool that hang on the same of everything but their racks."""

    site: int
    pool: int
    above: tuple[tuple[int, float], ...]  # supplies and loop, and the share of a node's watts each carries
    bays: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooling:
    """A device on a loop: what decides how hot it gets at some watts."""

    device: Device
    loop: Loop
    loop_resource: int
    time_scale: float


@dataclass(frozen=True, slots=True)
class Taking:
    """What some GPUs of one node take of all that is above it."""

    amounts: tuple[tuple[int, int], ...]
    loop_amount: int
    gpu_watts: float  # of each GPU


class Plant:
    """Names to numbers, and the tables that decisions walk."""

    def __init__(self, facility: Facility) -> None:
        self.facility = facility
        self.resources: list[Resource] = []
        self.kinds: list[ResourceKind] = []
        self.spots: list[Spot] = []
        self.sites: dict[str, Site] = {site.name: site for site in facility.sites}
        self.clouds: dict[str, Cloud] = {site.name: site.cloud for site in facility.sites if site.cloud}
        self.node_number: dict[str, int] = {}
        self.resource_number: dict[str, int] = {}
        self.nodes_of_site: dict[str, list[int]] = {}
        self.storage_of_site: dict[str, int] = {}
        self.loop_of_resource: dict[int, Loop] = {}
        self.site_of_resource: dict[int, str] = {}
        self.site_names = tuple(self.sites)
        self.site_numbers: dict[str, int] = {site.name: number for number, site in enumerate(facility.sites)}
        self.site_number_of_resource: list[int] = []  # -1: a link, between two of them
        self.site_number_of_node: list[int] = []
        self.pools: list[tuple[str, str]] = []  # site and device; "" for nodes without one
        self.pool_numbers: dict[tuple[str, str], int] = {}
        self.biggest_of_pool: list[int] = []  # GPUs of its biggest node
        self.pool_names: list[str] = []
        self.pools_of_site: list[list[int]] = [[] for _ in facility.sites]
        self.site_of_pool: list[int] = []
        self.bays: list[Bay] = []
        self.bays_of_pool: list[list[int]] = []
        self.zones: list[Zone] = []
        self.zones_of_pool: list[list[int]] = []
        self.zones_of_rack: dict[int, list[int]] = {}  # by the rack's resource
        self._zone_numbers: dict[tuple[int, int, tuple[tuple[int, float], ...]], int] = {}
        self.takings: dict[tuple[int, int, int, float | None, float], Taking] = {}  # worked out so far
        self.node_of_gpu: dict[str, int] = {}  # by the name of a GPU that was read
        self.last_claim: tuple[object, object, float, Claim] | None = None  # of a request at a place
        self.ramped: dict[int, float] = {}  # supplies whose load may not rise quicker, in watts per minute
        self.coolings: list[Cooling] = []
        self.coolings_on_loop: dict[int, list[int]] = {}
        self.links: dict[frozenset[str], Link] = {frozenset(link.between): link for link in facility.links}
        for site in facility.sites:
            self._add_site(site)
        self.sites_of_link: dict[int, tuple[int, int]] = {}
        for link in facility.links:
            ends = (self.site_numbers[link.between[0]], self.site_numbers[link.between[1]])
            for traffic in TrafficClass:
                share = link.shares.get(traffic, 0.0)
                number = self._add(
                    Resource(
                        name=f"{link.name}:{traffic}",
                        kind=ResourceKind.LINK,
                        cap=int(link.bits_per_second * share),
                    )
                )
                self.sites_of_link[number] = ends
        # What all zones of a pool hang on, and what is above one zone beside that.
        self.common_above: list[tuple[tuple[int, float], ...]] = [
            tuple(sorted(set.intersection(*(set(self.zones[zone].above) for zone in zones))))
            for zones in self.zones_of_pool
        ]
        self.own_above: list[tuple[tuple[int, float], ...]] = [
            tuple([each for each in zone.above if each not in self.common_above[zone.pool]])
            for zone in self.zones
        ]

    def pool_of(self, node: str) -> int:
        """The pool of a node by its name."""
        return self.spots[self.node_number[node]].pool

    def link_resource(self, site: str, other: str, traffic: TrafficClass) -> int | None:
        """The number of a link's share for this traffic, or None where no link joins the two sites."""
        link = self.links.get(frozenset((site, other)))
        return None if link is None else self.resource_number[f"{link.name}:{traffic}"]

    def _add(self, resource: Resource, site: str | None = None) -> int:
        number = len(self.resources)
        self.resources.append(resource)
        self.kinds.append(resource.kind)
        self.site_number_of_resource.append(-1 if site is None else self.site_numbers[site])
        self.resource_number[resource.name] = number
        return number

    def _add_site(self, site: Site) -> None:
        loads = {supply.name: [0.0, 0.0] for supply in site.supplies}
        heat = {loop.name: [0.0, 0.0] for loop in site.loops}
        shares = {rack.name: self._supply_shares(site, rack) for rack in site.racks}
        for rack in site.racks:
            idle = sum(node.idle_watts for node in rack.nodes)
            worst = sum(node.nameplate_watts for node in rack.nodes)
            for name, share in shares[rack.name]:
                loads[name][0] += share * idle
                loads[name][1] += share * worst
            heat[rack.loop][0] += idle
            heat[rack.loop][1] += worst
        for supply in site.supplies:
            idle, worst = loads[supply.name]
            number = self._add_power(site, supply.name, ResourceKind.SUPPLY, supply.usable_watts, idle, worst)
            if supply.ramp_watts_per_minute is not None:
                self.ramped[number] = supply.ramp_watts_per_minute
        for loop in site.loops:
            idle, worst = heat[loop.name]
            number = self._add_power(site, loop.name, ResourceKind.LOOP, loop.capacity_watts, idle, worst)
            self.loop_of_resource[number] = loop
        self.storage_of_site[site.name] = self._add(
            Resource(
                name=site.storage.name,
                kind=ResourceKind.STORAGE,
                cap=int(site.storage.throughput_bytes_per_second),
            ),
            site.name,
        )
        self.nodes_of_site[site.name] = []
        loops = {loop.name: loop for loop in site.loops}
        for rack in site.racks:
            idle = sum(node.idle_watts for node in rack.nodes)
            worst = sum(node.nameplate_watts for node in rack.nodes)
            number = self._add_power(site, rack.name, ResourceKind.RACK, rack.cap_watts, idle, worst)
            power = (
                (number, 1.0),
                *((self.resource_number[name], share) for name, share in shares[rack.name]),
            )
            self._add_nodes(site, rack, loops[rack.loop], number, power)

    def _add_nodes(
        self, site: Site, rack: Rack, loop: Loop, rack_resource: int, power: tuple[tuple[int, float], ...]
    ) -> None:
        loop_resource = self.resource_number[rack.loop]
        # Like nodes next to each other, so that a bay is a span of numbers.
        alike: dict[tuple[Device | None, int, int], list[Node]] = {}
        for node in rack.nodes:
            alike.setdefault((node.device, node.gpus, node.cpus), []).append(node)
        for (device, gpus, _), nodes in alike.items():
            pool = self._pool(site.name, device, gpus)
            bay = len(self.bays)
            cooling = -1 if device is None else self._cooling(device, loop, loop_resource, site)
            self.bays_of_pool[pool].append(bay)
            zone = self._zone(site, pool, (*power[1:], (loop_resource, 1.0)))
            self.zones[zone].bays.append(bay)
            self.zones_of_rack.setdefault(rack_resource, []).append(zone)
            self.bays.append(
                Bay(
                    rack_resource=rack_resource,
                    loop_resource=loop_resource,
                    pool=pool,
                    first=len(self.spots),
                    ends_before=len(self.spots) + len(nodes),
                    cooling=cooling,
                    zone=zone,
                )
            )
            for node in nodes:
                self.node_number[node.name] = len(self.spots)
                self.nodes_of_site[site.name].append(len(self.spots))
                self.site_number_of_node.append(self.site_numbers[site.name])
                self.spots.append(
                    Spot(
                        node=node,
                        site=site,
                        rack=rack,
                        loop=loop,
                        loop_resource=loop_resource,
                        power=power,
                        pool=pool,
                        bay=bay,
                    )
                )

    def _pool(self, site: str, device: Device | None, gpus: int) -> int:
        key = (site, device.name if device else "")
        number = self.pool_numbers.setdefault(key, len(self.pools))
        if number == len(self.pools):
            self.pools.append(key)
            self.pool_names.append("/".join(key))
            self.biggest_of_pool.append(0)
            self.bays_of_pool.append([])
            self.zones_of_pool.append([])
            self.pools_of_site[self.site_numbers[site]].append(number)
            self.site_of_pool.append(self.site_numbers[site])
        self.biggest_of_pool[number] = max(self.biggest_of_pool[number], gpus)
        return number

    def _zone(self, site: Site, pool: int, above: tuple[tuple[int, float], ...]) -> int:
        number = self._zone_numbers.setdefault((self.site_numbers[site.name], pool, above), len(self.zones))
        if number == len(self.zones):
            self.zones.append(Zone(site=self.site_numbers[site.name], pool=pool, above=above, bays=[]))
            self.zones_of_pool[pool].append(number)
        return number

    def _cooling(self, device: Device, loop: Loop, loop_resource: int, site: Site) -> int:
        there = self.coolings_on_loop.setdefault(loop_resource, [])
        for number in there:
            if self.coolings[number].device == device:
                return number
        there.append(len(self.coolings))
        self.coolings.append(
            Cooling(device=device, loop=loop, loop_resource=loop_resource, time_scale=site.thermal_time_scale)
        )
        return there[-1]

    def _add_power(
        self, site: Site, name: str, kind: ResourceKind, cap: float, idle: float, worst: float
    ) -> int:
        number = self._add(
            Resource(name=name, kind=kind, cap=int(cap), idle=round(idle), worst=round(worst)), site.name
        )
        self.site_of_resource[number] = site.name
        return number

    @staticmethod
    def _supply_shares(site: Site, rack: Rack) -> list[tuple[str, float]]:
        """What of a rack's watts each supply above it must be able to carry."""
        parents = {supply.name: supply.parent for supply in site.supplies}
        each = 1.0 if rack.redundant else 1.0 / len(rack.supplies)
        shares: dict[str, float] = {}
        for name in rack.supplies:
            above: str | None = name
            while above is not None:
                shares[above] = min(1.0, shares.get(above, 0.0) + each)
                above = parents[above]
        return list(shares.items())
