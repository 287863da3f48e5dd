"""Loops: how far above its supply does coolant run at capacity, and how fast does it follow its heat?

UA is capacity over approach; documents state the approach, so that is what is fitted. Less flow is taken
into account as physics does it, with flow^0.8.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wattline.facility import Facility, Loop, Site
from wattline.physics import predict_capacity_watts
from wattline.twin.calibrate.fit import Figure, Fit, cannot_tell, conclude, is_usable, note_time_scale
from wattline.twin.calibrate.meters import Meters
from wattline.twin.calibrate.series import Series, add_up, swing
from wattline.twin.calibrate.thermal import fit_temperature

_LEAST_SWING_SHARE = 0.03  # of the capacity
_LEAST_FLOW_FRACTION = 0.05  # below it a loop only stores heat: another equation, left out


def fit_loops(facility: Facility, meters: Meters) -> Iterator[Fit]:
    """Two figures for each loop."""
    for site in facility.sites:
        for loop in site.loops:
            yield from _fit_loop(site, loop, meters)


def _fit_loop(site: Site, loop: Loop, meters: Meters) -> Iterator[Fit]:
    path = ("sites", site.name, "loops", loop.name.split("/", 1)[1])
    approach = Figure(
        subject=loop.name,
        parameter="approach_kelvin",
        present=loop.approach_kelvin,
        path=(*path, "approach"),
    )
    lag = Figure(
        subject=loop.name,
        parameter="time_constant_seconds",
        present=loop.time_constant_seconds,
        path=(*path, "time_constant"),
    )
    coolant, heat = meters.find(loop.name, "coolant_celsius"), _heat_of(site, loop, meters)
    if coolant is None or isinstance(heat, str):
        reason = heat if isinstance(heat, str) else ""
        reason = meters.why_not(loop.name, "coolant_celsius") if coolant is None else reason
        yield from (cannot_tell(figure, reason) for figure in (approach, lag))
        return
    moved = swing(heat.values)
    if moved < _LEAST_SWING_SHARE * loop.capacity_watts:
        reason = f"its heat never moved by more than {moved:.3g} W"
        yield from (cannot_tell(figure, reason, len(coolant)) for figure in (approach, lag))
        return
    supply, note = _supply_of(loop, coolant, meters)
    fitted = fit_temperature(
        coolant,
        supply,
        heat,
        pace=_pace_of(loop, meters),
        scale=site.thermal_time_scale,
        present_seconds=loop.time_constant_seconds,
    )
    scaled = "; ".join(filter(None, (note, note_time_scale([site.thermal_time_scale]))))
    for figure, estimate, reason, worth, given in (
        (approach, fitted.gain, fitted.gain_reason, loop.capacity_watts, note),
        (lag, fitted.time_constant, fitted.time_constant_reason, 1.0, scaled),
    ):
        if estimate is not None and is_usable(estimate):
            yield conclude(figure, [estimate], fitted.samples, worth=worth, note=given)
        else:
            yield cannot_tell(figure, reason or "its readings are too noisy", fitted.samples)


def _heat_of(site: Site, loop: Loop, meters: Meters) -> Series | str:
    """Its own meter, or else what all its racks or all its nodes draw together."""
    if (heat := meters.find(loop.name, "loop_heat_watts")) is not None:
        return heat
    racks = [rack for rack in site.racks if rack.loop == loop.name]
    nodes = [node for rack in racks for node in rack.nodes]
    for names, quantity in (
        ([rack.name for rack in racks], "rack_watts"),
        ([node.name for node in nodes], "node_watts"),
    ):
        parts = [part for name in names if (part := meters.find(name, quantity)) is not None]
        if parts and len(parts) == len(names):
            return add_up(parts) or f"its {quantity} meters never speak at the same time"
        if parts:
            return f"{quantity} of only {len(parts)} of its {len(names)} were given, and no loop_heat_watts"
    return meters.why_not(loop.name, "loop_heat_watts")


def _supply_of(loop: Loop, coolant: Series, meters: Meters) -> tuple[Series, str]:
    supply = meters.find(loop.name, "supply_celsius")
    if supply is not None:
        return supply, ""
    constant = Series(coolant.at, np.full(len(coolant), loop.supply_celsius))
    why = meters.why_not(loop.name, "supply_celsius")
    return constant, f"supply taken as {loop.supply_celsius:g} °C throughout: {why}"


def _pace_of(loop: Loop, meters: Meters) -> Series | None:
    flow = meters.find(loop.name, "flow_fraction")
    if flow is None:
        return None
    paces = [
        predict_capacity_watts(1.0, fraction) if fraction >= _LEAST_FLOW_FRACTION else 0.0
        for fraction in flow.values.tolist()
    ]
    return Series(flow.at, np.array(paces))
