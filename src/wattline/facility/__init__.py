"""What exists: sites, feeds, cooling loops, racks, nodes, links, storage."""

from wattline.facility.devices import DEVICES, Device
from wattline.facility.metering import COUNTERS, SUBJECTS, Series, Source, units_of
from wattline.facility.model import (
    Cloud,
    CoolingKind,
    Facility,
    Link,
    Loop,
    Node,
    PowerCaps,
    Rack,
    Site,
    Sleep,
    Slurm,
    Slurmrestd,
    Starts,
    Storage,
    Supply,
    TrafficClass,
)

__all__ = [
    "COUNTERS",
    "DEVICES",
    "SUBJECTS",
    "Cloud",
    "CoolingKind",
    "Device",
    "Facility",
    "Link",
    "Loop",
    "Node",
    "PowerCaps",
    "Rack",
    "Series",
    "Site",
    "Sleep",
    "Slurm",
    "Slurmrestd",
    "Source",
    "Starts",
    "Storage",
    "Supply",
    "TrafficClass",
    "units_of",
]
