"""What does a facility look like at a glance? A tree with a bar for each finite thing, like racks folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby
from typing import TypeVar

from rich.text import Text
from rich.tree import Tree

from wattline.cli.facility_facts import Facts, Level
from wattline.facility import Link, Loop, Node, Rack, Site, Supply, TrafficClass
from wattline.plane.moments import clock
from wattline.units import (
    format_bits_per_second,
    format_bytes,
    format_celsius,
    format_share,
    format_watts,
)

_Thing = TypeVar("_Thing")
_NUMBERED = re.compile(r"(.*?)(\d+)\Z")


def facility_tree(facts: Facts, *, bar_cells: int, unfold: bool) -> Tree:
    facility = facts.facility
    emulated = ", emulated" if facility.emulated else ""
    when = "idle: nothing has run on it here" if facts.at is None else f"as of {clock(facts.at)}"
    title = Text.assemble(
        (facility.name, "bold"), f"  {facility.gpus:,} GPUs{emulated}", (f"  {when}", "dim")
    )
    root = Tree(title, guide_style="dim")
    for site in facility.sites:
        _Branch(facts, site, bar_cells, unfold=unfold).grow(root)
    if facility.links:
        branch = root.add(Text("links", style="bold"))
        for link in facility.links:
            _add_link(branch, facts, link, bar_cells)
    return root


class _Branch:
    """One site."""

    def __init__(self, facts: Facts, site: Site, bar_cells: int, *, unfold: bool) -> None:
        self._facts = facts
        self._site = site
        self._bar_cells = bar_cells
        self._unfold = unfold
        self._racks = fold(site.racks, None if unfold else self._likeness)
        names = [
            *(each.name for each in site.supplies),
            *(each.name for each in site.loops),
            site.storage.name,
        ]
        shown = [*map(_short, names), *(span([rack.name for rack in racks]) for racks in self._racks)]
        self._name_cells = max(map(len, shown))

    def grow(self, root: Tree) -> None:
        branch = root.add(_site_line(self._site))
        if self._site.cloud is not None:  # what the provider takes care of is nobody's here
            for rack in self._site.racks:
                for nodes in fold(rack.nodes, None if self._unfold else self._node_likeness):
                    branch.add(self._node_line(nodes, [rack]))
            return
        for feed in (supply for supply in self._site.supplies if supply.parent is None):
            self._add_supply(branch, feed)
        for loop in self._site.loops:
            self._add_loop(branch, loop)
        storage = self._site.storage
        branch.add(self._line("storage", _short(storage.name), self._facts.level(storage.name), _bytes_rate))
        for racks in self._racks:
            self._add_racks(branch, racks)

    def _add_supply(self, tree: Tree, supply: Supply) -> None:
        kind = "feed" if supply.parent is None else "pdu"
        branch = tree.add(self._line(kind, _short(supply.name), self._facts.level(supply.name), format_watts))
        for below in self._site.supplies:
            if below.parent == supply.name:
                self._add_supply(branch, below)

    def _add_loop(self, tree: Tree, loop: Loop) -> None:
        coolant, flow = self._facts.coolant_celsius(loop), self._facts.flow_fraction(loop)
        parts = [f"{loop.kind} {format_celsius(loop.supply_celsius if coolant is None else coolant)}"]
        if flow is not None and flow < 1:
            parts.append(f"flow {format_share(flow)}")
        note = ", ".join(parts)
        tree.add(self._line("loop", _short(loop.name), self._facts.level(loop.name), format_watts, note))

    def _add_racks(self, tree: Tree, racks: Sequence[Rack]) -> None:
        levels = [self._facts.level(rack.name) for rack in racks]
        fullest = max(levels, key=lambda level: level.fraction)
        supplies = "+".join(_short(supply) for supply in racks[0].supplies)
        kind = "rack" if len(racks) == 1 else f"{len(racks)} racks"
        note = f"{supplies}, {_short(racks[0].loop)}"
        branch = tree.add(self._line(kind, span([rack.name for rack in racks]), fullest, format_watts, note))
        for nodes in fold(racks[0].nodes, None if self._unfold else self._node_likeness):
            branch.add(self._node_line(nodes, racks))

    def _node_line(self, nodes: Sequence[Node], racks: Sequence[Rack]) -> Text:
        first = nodes[0]
        alike = list(nodes) if self._unfold else self._like(first, racks)
        kind = "node" if len(nodes) == 1 else f"{len(nodes)} nodes"
        line = Text.assemble(
            (kind, "cyan"), f" {span([node.name.removeprefix(first.rack + '-') for node in nodes])}: "
        )
        if first.device is None:
            return line.append(f"{first.cpus} CPUs, no GPU")
        each = " each" if len(alike) > 1 else ""
        line.append(f"{first.gpus} {first.device.name}, {first.cpus} CPUs, ")
        free = self._facts.gpus_free(first)
        line.append(
            f"{free} GPUs free{each}", style="" if free == first.gpus else "yellow" if free else "red"
        )
        hot = [celsius for node in alike if (celsius := self._facts.gpu_celsius(node)) is not None]
        watts = [drawn for node in alike if (drawn := self._facts.gpu_watts(node)) is not None]
        if hot and watts:
            upto = "≤ " if len(alike) > 1 else ""
            line.append(f", {upto}{format_watts(max(watts))} {format_celsius(max(hot))}", style="dim")
        return line

    def _like(self, node: Node, racks: Sequence[Rack]) -> list[Node]:
        wanted = self._node_likeness(node)
        return [each for rack in racks for each in rack.nodes if self._node_likeness(each) == wanted]

    def _line(self, kind: str, name: str, level: Level, unit: Callable[[float], str], note: str = "") -> Text:
        kind_cells = 4 if kind == "pdu" else 8  # a PDU stands one level deeper, and its bar below the others
        line = Text.assemble((f"{kind:<{kind_cells}}", "cyan"), f" {name:<{self._name_cells}}  ")
        line.append_text(level_text(level, unit, self._bar_cells))
        return line.append(f"  {note}", style="dim") if note else line

    def _likeness(self, rack: Rack) -> Hashable:
        nodes = tuple(self._node_likeness(node) for node in rack.nodes)
        return (rack.cap_watts, rack.supplies, rack.loop, self._facts.level(rack.name).cap, nodes)

    def _node_likeness(self, node: Node) -> Hashable:
        device = node.device.name if node.device else ""
        return (device, node.gpus, node.cpus, node.other_watts, node.tier, self._facts.gpus_free(node))


def _site_line(site: Site) -> Text:
    note = (
        f"{site.region}, PUE {site.pue:.3g}, {site.usd_per_kwh:g} USD/kWh, {site.grams_co2_per_kwh:g} g/kWh"
    )
    if site.cloud is not None:
        cloud = site.cloud
        note = (
            f"{site.region}, up to {cloud.max_gpus} GPUs at {cloud.usd_per_gpu_hour:g} USD/h each, "
            f"{cloud.reclaims_per_gpu_hour:g} reclaims an hour and GPU, "
            f"{cloud.usd_per_gigabyte_out:g} USD/GB out"
        )
        return Text.assemble((site.name, "bold"), (f"  {note}", "dim"), ("  rented", "cyan"))
    line = Text.assemble((site.name, "bold"), (f"  {note}", "dim"))
    return line.append(f"  {site.telemetry}", style="yellow" if site.telemetry == "emulated" else "green")


def _add_link(tree: Tree, facts: Facts, link: Link, bar_cells: int) -> None:
    speed = format_bits_per_second(link.bits_per_second)
    where = f"{link.between[0]} – {link.between[1]}, {speed}, {1000 * link.latency_seconds:g} ms"
    branch = tree.add(Text.assemble((link.name, "cyan"), f"  {where}"))
    for traffic in TrafficClass:
        level = facts.level(f"{link.name}:{traffic}")
        if level.used:
            line = Text(f"{traffic:<10}  ")
            branch.add(line.append_text(level_text(level, format_bits_per_second, bar_cells)))


def level_text(level: Level, unit: Callable[[float], str], bar_cells: int) -> Text:
    """A bar, and the numbers it stands for; its colour says how near the end is."""
    full = min(bar_cells, round(level.fraction * bar_cells))
    style = "green" if level.fraction < 0.7 else "yellow" if level.fraction < 0.9 else "bold red"
    bar = Text.assemble(("█" * full, style), ("░" * (bar_cells - full), "dim"))
    numbers = f"{unit(level.used)} of {unit(level.cap)}"
    return bar.append(f" {numbers:<19}", style="none")


def fold(things: Iterable[_Thing], likeness: Callable[[_Thing], Hashable] | None) -> list[list[_Thing]]:
    """Neighbours that are alike, together; without a likeness, each alone."""
    if likeness is None:
        return [[thing] for thing in things]
    return [list(alike) for _, alike in groupby(things, key=likeness)]


def span(names: Sequence[str]) -> str:
    """`r1..r8`, as a facility document writes it."""
    first, last = _short(names[0]), _short(names[-1])
    if len(names) == 1:
        return first
    one, other = _NUMBERED.match(first), _NUMBERED.match(last)
    return f"{first}..{last}" if one and other and one[1] == other[1] else f"{first}, …, {last}"


def _short(name: str) -> str:
    return name.partition("/")[2] or name


def _bytes_rate(rate: float) -> str:
    return f"{format_bytes(rate)}/s"
