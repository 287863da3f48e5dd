"""Plausible: can this thing draw so much, or does its meter speak in another unit than was said?"""

from __future__ import annotations

from wattline.facility import Site, units_of
from wattline.units import format_named

# Meters are a little off, and loads overshoot for a moment; a thousand times as much is another unit.
_OVER = 2.0
_UNDER = 0.01  # of what it draws when it idles: nothing that is on draws less
_GPU_OVER_WATTS = 50.0
_RANGES = {
    "gpu_celsius": (-20.0, 130.0),
    "inlet_celsius": (-20.0, 110.0),
    "coolant_celsius": (-20.0, 110.0),
    "supply_celsius": (-20.0, 110.0),
    "flow_fraction": (0.0, 3.0),
    "gpu_busy_fraction": (0.0, 1.01),
    "node_up": (0.0, 1.0),
}
_ANY = (0.0, float("inf"))


class Plausible:
    """What each thing of a site may be said to draw: from a hundredth of its idle draw to twice its limit."""

    def __init__(self, site: Site) -> None:
        self._bounds: dict[str, dict[str, tuple[float, float]]] = {"gpu_watts": {}, "gpu_limit_watts": {}}
        gpus = self._bounds["gpu_watts"]
        nodes = self._bounds.setdefault("node_watts", {})
        racks = self._bounds.setdefault("rack_watts", {})
        for rack in site.racks:
            idle = sum(node.idle_watts for node in rack.nodes)
            worst = sum(node.nameplate_watts for node in rack.nodes)
            racks[rack.name] = (_UNDER * idle, _OVER * max(rack.cap_watts, worst))
            for node in rack.nodes:
                nodes[node.name] = (_UNDER * node.idle_watts, _OVER * node.nameplate_watts)
                if node.device is not None:
                    most = 1.5 * node.device.limit_watts + _GPU_OVER_WATTS
                    gpus[node.name] = (_UNDER * node.device.idle_watts, most)
        self._bounds["gpu_limit_watts"] = gpus
        self._bounds["supply_watts"] = {
            supply.name: (0.0, _OVER * supply.overload_factor * supply.rating_watts)
            for supply in site.supplies
        }
        self._bounds["loop_heat_watts"] = {
            loop.name: (0.0, _OVER * 2.0 * loop.capacity_watts) for loop in site.loops
        }

    def bounds(self, quantity: str, name: str) -> tuple[float, float]:
        """The least and the most that may be said; nothing at all is always possible of what is off."""
        known = self._bounds.get(quantity)
        return known.get(name, _ANY) if known is not None else _RANGES.get(quantity, _ANY)

    def doubt(self, quantity: str, name: str, value: float) -> str:
        """Why a value cannot be: what it says, what may be, and which unit it looks like."""
        least, most = self.bounds(quantity, name)
        unit = quantity if quantity in _RANGES or quantity in self._bounds else "watts"
        likely = [
            one for one, worth in units_of(quantity).items() if least <= value * worth <= most and worth != 1
        ]
        looks = f"; it looks like {likely[0]}: say its unit in the facility document" if likely else ""
        bound = f"above {format_named(unit, most)}" if value > most else f"below {format_named(unit, least)}"
        return f"{format_named(unit, value)} is {bound}, which it cannot be{looks}"
