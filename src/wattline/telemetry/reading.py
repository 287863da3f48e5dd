"""Reading: what did a meter say, about what, when, and how far can it be trusted?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One number from one meter."""

    subject: str  # site/name of a node, rack, supply or loop; node/gpu0; a link's name
    quantity: str  # its unit last: gpu_watts, coolant_celsius, flow_fraction
    value: float
    at: float
    source: str  # emulated | nvml | host | …
    quality: str = "good"
