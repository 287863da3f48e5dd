"""Meters to readings: emulated. NVML is a module of its own: only who asks real GPUs loads its client."""

from wattline.telemetry.emulated import EmulatedFacility
from wattline.telemetry.reading import Reading

__all__ = ["EmulatedFacility", "Reading"]
