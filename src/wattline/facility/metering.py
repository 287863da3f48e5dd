"""Metering: where do a site's readings come from, of what, and in which unit?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# What a reading may be of, by quantity; its unit is the last word.
SUBJECTS: dict[str, str] = {
    "gpu_watts": "gpu",
    "gpu_celsius": "gpu",
    "gpu_limit_watts": "gpu",
    "gpu_busy_fraction": "gpu",
    "gpu_joules": "gpu",  # counts up
    "gpu_power_violation_seconds": "gpu",  # counts up: how long a GPU was held back by its power limit
    "gpu_thermal_violation_seconds": "gpu",  # … by heat
    "node_watts": "node",
    "node_up": "node",
    "inlet_celsius": "node",
    "rack_watts": "rack",
    "supply_watts": "supply",
    "loop_heat_watts": "loop",
    "coolant_celsius": "loop",
    "supply_celsius": "loop",
    "flow_fraction": "loop",
    "flow_litres_per_minute": "loop",  # becomes a fraction where the loop says how much it is laid out for
    "cap_watts": "any",  # of a rack, supply or loop
}
COUNTERS = frozenset({"gpu_joules", "gpu_power_violation_seconds", "gpu_thermal_violation_seconds"})
# What one of a unit is worth in the unit that a quantity ends with.
UNIT_WORTHS: dict[str, dict[str, float]] = {
    "watts": {"W": 1.0, "kW": 1e3, "MW": 1e6, "mW": 1e-3},
    "celsius": {"C": 1.0},
    "joules": {"J": 1.0, "kJ": 1e3, "mJ": 1e-3, "Wh": 3.6e3, "kWh": 3.6e6},
    "seconds": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "fraction": {"fraction": 1.0, "%": 1e-2},
    "minute": {"L/min": 1.0},
    "up": {"bool": 1.0},
}
# Quantities that the ledger goes by: a resource that one of these is told of counts as metered.
_DRAWN = frozenset({"rack_watts", "supply_watts", "loop_heat_watts"})
# What Redfish tells of each kind of thing.
REDFISH_QUANTITIES = frozenset({"node_watts", *_DRAWN, "coolant_celsius", "supply_celsius", "flow_fraction"})


def units_of(quantity: str) -> dict[str, float]:
    """The units that a quantity may come in, each with its worth; the first is its own."""
    return UNIT_WORTHS[quantity.rpartition("_")[2]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One quantity, as a source knows it."""

    quantity: str
    ask: str  # PromQL, or an OID
    label: str = ""  # whose value names the node, rack, supply or loop
    gpu_label: str = ""  # whose value is the number of the GPU
    worth: float = 1.0  # what one of what it says is in the quantity's own unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Something that is asked for readings, every so often."""

    kind: str  # prometheus | nvml | redfish | snmp | host
    url: str = ""
    every_seconds: float = 10.0
    timeout_seconds: float = 5.0
    secret_file: str = ""  # holds a token, a community, or user:password; read when it is needed
    ca_file: str = ""  # who signed its certificate, where that is nobody the machine knows
    series: tuple[Series, ...] = ()
    targets: Mapping[str, str] = field(default_factory=dict)  # what is metered, and the address of its meter
    names: Mapping[str, str] = field(default_factory=dict)  # what labels say, and what is called so here

    @property
    def reads_gpus(self) -> bool:
        """Whether it tells what GPUs draw, so that a job's energy can be counted."""
        drawn = ("gpu_watts", "gpu_joules")
        return self.kind == "nvml" or any(series.quantity in drawn for series in self.series)

    def tells(self, name: str, quantity: str) -> bool:
        """Whether it is to tell this of a rack, supply or loop."""
        if self.kind == "redfish":
            return name in self.targets and quantity in REDFISH_QUANTITIES
        known = any(series.quantity == quantity for series in self.series)
        return known and (not self.targets or name in self.targets)
