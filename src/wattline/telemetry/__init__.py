"""Meters to readings: emulated and NVML."""

from wattline.telemetry.emulated import EmulatedFacility
from wattline.telemetry.nvml import (
    NvmlDevice,
    NvmlUnavailableError,
    nvml_readings,
    nvml_unavailable_reason,
    read_nvml_devices,
)
from wattline.telemetry.reading import Reading

__all__ = [
    "EmulatedFacility",
    "NvmlDevice",
    "NvmlUnavailableError",
    "Reading",
    "nvml_readings",
    "nvml_unavailable_reason",
    "read_nvml_devices",
]
