"""The facility as the ledger sees it: numbered nodes and resources, and what hangs on what.

Built once from a Facility; decisions then work with small integers instead of names.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wattline.facility import Device, Facility, Link, Loop, Node, Rack, Site, TrafficClass


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


class Plant:
    """Names to numbers, and the tables that decisions walk."""

    def __init__(self, facility: Facility) -> None:
        self.facility = facility
        self.resources: list[Resource] = []
        self.spots: list[Spot] = []
        self.sites: dict[str, Site] = {site.name: site for site in facility.sites}
        self.node_number: dict[str, int] = {}
        self.resource_number: dict[str, int] = {}
        self.nodes_of_site: dict[str, list[int]] = {}
        self.storage_of_site: dict[str, int] = {}
        self.loop_of_resource: dict[int, Loop] = {}
        self.site_of_resource: dict[int, str] = {}
        self.devices_on_loop: dict[int, dict[Device, None]] = {}
        self.links: dict[frozenset[str], Link] = {frozenset(link.between): link for link in facility.links}
        for site in facility.sites:
            self._add_site(site)
        for link in facility.links:
            for traffic in TrafficClass:
                share = link.shares.get(traffic, 0.0)
                self._add(
                    Resource(
                        name=f"{link.name}:{traffic}",
                        kind=ResourceKind.LINK,
                        cap=int(link.bits_per_second * share),
                    )
                )

    def link_resource(self, site: str, other: str, traffic: TrafficClass) -> int | None:
        """The number of a link's share for this traffic, or None where no link joins the two sites."""
        link = self.links.get(frozenset((site, other)))
        return None if link is None else self.resource_number[f"{link.name}:{traffic}"]

    def _add(self, resource: Resource) -> int:
        number = len(self.resources)
        self.resources.append(resource)
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
            self._add_power(site, supply.name, ResourceKind.SUPPLY, supply.usable_watts, idle, worst)
        for loop in site.loops:
            idle, worst = heat[loop.name]
            number = self._add_power(site, loop.name, ResourceKind.LOOP, loop.capacity_watts, idle, worst)
            self.loop_of_resource[number] = loop
        self.storage_of_site[site.name] = self._add(
            Resource(
                name=site.storage.name,
                kind=ResourceKind.STORAGE,
                cap=int(site.storage.throughput_bytes_per_second),
            )
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
            for node in rack.nodes:
                if node.device is not None:
                    devices = self.devices_on_loop.setdefault(self.resource_number[rack.loop], {})
                    devices[node.device] = None
                self.node_number[node.name] = len(self.spots)
                self.nodes_of_site[site.name].append(len(self.spots))
                self.spots.append(
                    Spot(
                        node=node,
                        site=site,
                        rack=rack,
                        loop=loops[rack.loop],
                        loop_resource=self.resource_number[rack.loop],
                        power=power,
                    )
                )

    def _add_power(
        self, site: Site, name: str, kind: ResourceKind, cap: float, idle: float, worst: float
    ) -> int:
        number = self._add(Resource(name=name, kind=kind, cap=int(cap), idle=round(idle), worst=round(worst)))
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
