"""Emulated readings: what do the meters of a loop, a site and a link say at one moment?"""

from __future__ import annotations

from collections.abc import Mapping

from wattline.facility import Link, Site
from wattline.telemetry.emulated_loop import EmulatedLoop
from wattline.telemetry.emulated_machine import Machine
from wattline.telemetry.fault_schedule import FaultSchedule
from wattline.telemetry.naming import qualify
from wattline.telemetry.reading import Reading

_SOURCE = "emulated"


def read_loop(loop: EmulatedLoop, at: float) -> list[Reading]:
    """A loop's plant meters and the GPUs that it cools."""
    found = [
        _reading(loop.name, "coolant_celsius", loop.coolant_celsius, at),
        _reading(loop.name, "supply_celsius", loop.supply_celsius, at),
        _reading(loop.name, "flow_fraction", loop.flow_fraction, at),
        _reading(loop.name, "loop_heat_watts", loop.heat_watts, at),
    ]
    for gpu, celsius in loop.celsius():
        found += [
            _reading(gpu.subject, "gpu_watts", gpu.watts, at),
            _reading(gpu.subject, "gpu_celsius", celsius, at),
            _reading(gpu.subject, "gpu_limit_watts", gpu.limit_watts, at),
        ]
    return found


def read_site(
    site: Site, machines: Mapping[str, Machine], schedule: FaultSchedule, at: float
) -> list[Reading]:
    """Nodes, racks and supplies: what they carry, and for the last two what they may carry now."""
    found = []
    carried_watts = {supply.name: 0.0 for supply in site.supplies}
    parents = {supply.name: supply.parent for supply in site.supplies}
    for rack in site.racks:
        rack_watts = 0.0
        for node in rack.nodes:
            name = qualify(site.name, node.name)
            node_watts = machines[name].watts
            rack_watts += node_watts
            found.append(_reading(name, "node_watts", node_watts, at))
        subject = qualify(site.name, rack.name)
        cap_watts = rack.cap_watts * _rating_left(schedule, "rack", subject)
        found.append(_reading(subject, "rack_watts", rack_watts, at))
        found.append(_reading(subject, "cap_watts", cap_watts, at))
        for supply_name in rack.supplies:  # A and B carry alike as long as both are there
            above: str | None = supply_name
            while above is not None:
                carried_watts[above] += rack_watts / len(rack.supplies)
                above = parents[above]
    for supply in site.supplies:
        subject = qualify(site.name, supply.name)
        usable_watts = supply.usable_watts * _rating_left(schedule, "supply", subject)
        found.append(_reading(subject, "supply_watts", carried_watts[supply.name], at))
        found.append(_reading(subject, "cap_watts", usable_watts, at))
    return found


def read_link(link: Link, schedule: FaultSchedule, at: float) -> list[Reading]:
    """What a link carries now, in all and for each class of traffic."""
    left = min(schedule.effects("link", link.name, lambda fault: fault.bandwidth), default=1.0)
    bits_per_second = link.bits_per_second * left
    return [
        _reading(link.name, "cap_bits_per_second", bits_per_second, at),
        *(
            _reading(f"{link.name}:{traffic}", "cap_bits_per_second", bits_per_second * share, at)
            for traffic, share in link.shares.items()
        ),
    ]


def _rating_left(schedule: FaultSchedule, kind: str, subject: str) -> float:
    return min(schedule.effects(kind, subject, lambda fault: fault.rating), default=1.0)


def _reading(subject: str, quantity: str, value: float, at: float) -> Reading:
    return Reading(subject, quantity, value, at, _SOURCE)
