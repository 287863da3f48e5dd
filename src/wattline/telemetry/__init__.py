"""Meters to readings: emulated, or asked by a thread for each source."""

from wattline.telemetry.emulated import EmulatedFacility
from wattline.telemetry.listening import Batch, Listeners, MeterSource
from wattline.telemetry.readers import readers_of
from wattline.telemetry.reading import Reading

__all__ = ["Batch", "EmulatedFacility", "Listeners", "MeterSource", "Reading", "readers_of"]
