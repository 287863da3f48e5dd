"""Meters to readings: emulated, NVML and the host itself."""

from wattline.telemetry.emulated import EmulatedFacility
from wattline.telemetry.host import HostMeter
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
    "HostMeter",
    "NvmlDevice",
    "NvmlUnavailableError",
    "Reading",
    "nvml_readings",
    "nvml_unavailable_reason",
    "read_nvml_devices",
]
