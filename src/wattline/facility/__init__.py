"""What exists: sites, feeds, cooling loops, racks, nodes, links, storage."""

from wattline.facility.devices import DEVICES, Device
from wattline.facility.model import (
    Cloud,
    CoolingKind,
    Facility,
    Link,
    Loop,
    Node,
    Rack,
    Site,
    Sleep,
    Starts,
    Storage,
    Supply,
    TrafficClass,
)

__all__ = [
    "DEVICES",
    "Cloud",
    "CoolingKind",
    "Device",
    "Facility",
    "Link",
    "Loop",
    "Node",
    "Rack",
    "Site",
    "Sleep",
    "Starts",
    "Storage",
    "Supply",
    "TrafficClass",
]
