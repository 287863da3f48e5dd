"""Proposing: how would this cluster be written as a facility document, and what of it is only assumed?

What nobody told is written so that it limits nothing, with a comment that says so, and is named in `assumed`.
The document passes the checks of `wattline facility check` before anybody sees it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from wattline.facility import Device, Facility
from wattline.observing.machines import Machine
from wattline.observing.racks import LONGEST_RACK, Standing
from wattline.observing.throttling import device_of
from wattline.spec import FacilityDocument, build_facility, parse_document
from wattline.spec.ranges import names_in

_ROOM = 1.5  # more than any margin that a policy keeps: what is assumed must not bind
# Fans and supply losses of a server that is cooled by air are an eighth of what its GPUs take and more
# (physics/fans, physics/power); without them a cap that is known would seem to carry what it does not.
_BESIDE_GPUS = 0.15
_CONTINUOUS = 0.8  # what a breaker holds for hours: the reader's own default


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is told of a cluster."""

    cluster: str
    machines: Mapping[str, Machine]
    models: Mapping[str, str]  # by node, what its driver calls its GPUs
    standings: Mapping[str, Standing]  # from a table
    switches: Mapping[str, str]  # by node, the lowest one above it
    gpu: str = ""  # what a person says all GPUs are
    prometheus: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A document, and what is in it that nobody said."""

    text: str
    facility: Facility
    hosts: Mapping[str, str]  # by node of the facility, Slurm's own name
    assumed: tuple[str, ...]
    left_out: tuple[str, ...]  # nodes whose GPUs nobody could name


@dataclass(slots=True)
class _Rack:
    standing: Standing
    nodes: list[tuple[Machine, Device]] = field(default_factory=list)

    @property
    def watts(self) -> float:
        flat_out = sum(
            (1.0 + _BESIDE_GPUS) * machine.gpus * device.limit_watts for machine, device in self.nodes
        )
        return self.standing.cap_watts or _ROOM * flat_out


def propose(known: Known) -> Proposal | None:
    """None where no node has GPUs of a model that is known."""
    sites, left_out = _gather(known)
    if not sites:
        return None
    lines = [
        f"# What `wattline observe` found out about {_plain(known.cluster) or 'this cluster'}.",
        "# Lines that say `assumed` are not known: they limit nothing until you put in what is true.",
        f"facility: {_plain(known.cluster) or 'cluster'}",
        "sites:",
    ]
    hosts: dict[str, str] = {}
    assumed: dict[str, None] = {}
    for site, racks in sites.items():
        lines += _site(site, racks, known, hosts, assumed)
    text = "\n".join(lines) + "\n"
    document = parse_document(text.encode(), FacilityDocument, file="the proposed facility")
    return Proposal(
        text=text,
        facility=build_facility(document),
        hosts=hosts,
        assumed=tuple(assumed),
        left_out=tuple(sorted(left_out)),
    )


def _gather(known: Known) -> tuple[dict[str, dict[str, _Rack]], list[str]]:
    sites: dict[str, dict[str, _Rack]] = defaultdict(dict)
    left_out = []
    for machine in sorted(known.machines.values(), key=lambda machine: _in_order(machine.name)):
        if machine.gpus == 0:
            continue
        device = _device(machine, known)
        if device is None:
            left_out.append(machine.name)
            continue
        standing = known.standings.get(machine.name) or Standing(
            rack=_plain(known.switches.get(machine.name, "")) or "rack-not-known"
        )
        site = standing.site or _plain(known.cluster) or "site"
        rack = sites[site].setdefault(standing.rack, _Rack(standing))
        rack.nodes.append((machine, device))
    return dict(sites), left_out


def _device(machine: Machine, known: Known) -> Device | None:
    names = (known.gpu, machine.model, known.models.get(machine.name, ""))
    return next((device for name in names if name and (device := device_of(name))), None)


def _site(
    name: str, racks: dict[str, _Rack], known: Known, hosts: dict[str, str], assumed: dict[str, None]
) -> list[str]:
    # A loop or feed of exactly what its racks may draw would bind before them: policies keep margins.
    total = _ROOM * sum(rack.watts for rack in racks.values())
    loads: dict[str, float] = defaultdict(float)
    loops: dict[str, float] = defaultdict(float)
    for rack in racks.values():
        loops[rack.standing.loop or "loop-1"] += _ROOM * rack.watts
        for pdu in rack.standing.pdus:
            loads[pdu] += _ROOM * rack.watts
    for what in (
        *("region", "energy price", "carbon intensity", "feed ratings", "cooling kind and capacity"),
        *("storage throughput", "watts beside GPUs"),
    ):
        assumed[what] = None
    lines = [
        f"  {name}:",
        "    region: not-known  # assumed",
        "    tariff: {energy: 0}  # assumed: no price is known, so no cost is counted",
        "    carbon: {zone: not-known, intensity: 0}  # assumed",
        f"    feeds: {{feed-1: {{rating: {_watts(total / _CONTINUOUS)}}}}}  # assumed: carries all",
    ]
    if loads:
        assumed["PDU ratings"] = None
        lines.append("    pdus:  # names from the table; ratings assumed: each carries its racks")
        lines += [
            f"      {pdu}: {{feed: feed-1, rating: {_watts(watts / _CONTINUOUS)}}}"
            for pdu, watts in sorted(loads.items())
        ]
    lines.append("    loops:  # kind, capacity and supply assumed: takes all heat away")
    lines += [
        f"      {loop}: {{kind: air, capacity: {_watts(watts)}, supply: 22C}}"
        for loop, watts in loops.items()
    ]
    lines.append("    racks:")
    names: list[str] = []
    for rack_name, rack in racks.items():
        lines += _rack(name, rack_name, rack, known, hosts, names, assumed)
    lines.append("    storage: {throughput: 1GB/s}  # assumed")
    lines.append("    engine: slurm  # work begins as jobs of it, once `wattline serve` conducts this")
    return lines + _telemetry(known, names)


def _rack(
    site: str,
    name: str,
    rack: _Rack,
    known: Known,
    hosts: dict[str, str],
    names: list[str],
    assumed: dict[str, None],
) -> list[str]:
    standing = rack.standing
    is_told = any(machine.name in known.standings for machine, _ in rack.nodes)
    if is_told:
        whence = ""
    elif any(machine.name in known.switches for machine, _ in rack.nodes):
        whence, assumed["which nodes share a rack: those under one switch"] = "  # a guess: one switch", None
    else:
        whence, assumed["which nodes share a rack: all of them"] = (
            "  # a guess: nobody says who stands where",
            None,
        )
    cap = _watts(rack.watts)
    if standing.cap_watts is None:
        cap += "  # assumed: more than all of it flat out"
        assumed["rack caps"] = None
    lines = [f"      {name}:{whence}"]
    if standing.row:
        lines.append(f"        row: {standing.row}")
    lines += [
        f"        cap: {cap}",
        f"        power: [{', '.join(standing.pdus or ('feed-1',))}]",
        f"        loop: {standing.loop or 'loop-1'}",
        "        nodes:",
    ]
    switches = {_plain(known.switches.get(machine.name, "")) for machine, _ in rack.nodes} - {""}
    if len(switches) == 1:
        lines.insert(-1, f"        switch: {switches.pop()}")
    groups: list[tuple[tuple[str, int, int, float], list[str]]] = []
    for machine, device in rack.nodes:
        key = (device.name, machine.gpus, machine.cpus, _BESIDE_GPUS * machine.gpus * device.limit_watts)
        if not groups or groups[-1][0] != key:
            groups.append((key, []))
        groups[-1][1].append(machine.name)
        number = sum(len(group) for _, group in groups)
        hosts[f"{site}/{name}-n{number}"] = machine.name
        names.append(f"{_quoted(machine.name)}: {name}-n{number}")
    for (model, gpus, cpus, other_watts), group in groups:
        said = f"count: {len(group)}, gpu: {model}, gpus: {gpus}, cpus: {max(1, cpus)}"
        said += f", other: {_watts(other_watts)}"  # `assumed` names it
        said += f", hosts: [{_hosts(group)}]"
        lines.append(f"          - {{{said}}}")
    return lines


def _hosts(group: list[str]) -> str:
    """What Slurm calls them, as a range where they are one."""
    whole = f"{group[0]}..{group[-1]}"
    return whole if len(group) > 1 and names_in(whole) == tuple(group) else ", ".join(map(_quoted, group))


def _telemetry(known: Known, names: list[str]) -> list[str]:
    if not known.prometheus:
        return ["    telemetry: {source: none}"]
    return [
        "    telemetry:",
        "      source: prometheus",
        f"      url: {_quoted(known.prometheus)}",
        "      names:  # what Hostname says, and which node that is",
        *(f"        {pair}" for pair in names),
    ]


def _plain(name: str) -> str:
    """A name of a document from one that Slurm allows."""
    return re.sub(r"\.{2,}", ".", re.sub(r"[^A-Za-z0-9._-]", "-", name))[:LONGEST_RACK].strip("._-")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _watts(watts: float) -> str:
    return f"{max(1.0, watts):.0f}W"


def _in_order(name: str) -> tuple[str | int, ...]:
    """n2 before n10."""
    return tuple(int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name))
