"""NVML: what do this machine's GPUs say about themselves? Reads only; nothing here sets anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pynvml

from wattline.errors import UnavailableError
from wattline.telemetry.reading import Reading

_Value = TypeVar("_Value")

# A device that lacks a meter says one of these; anything else is a fault of the device.
_LACKING = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_NO_PERMISSION,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    }
)


class NvmlUnavailableError(UnavailableError):
    """There is no driver to ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlDevice:
    """One GPU; None where it has no such meter. A device that cannot be read says why in `fault`."""

    index: int
    name: str | None = None
    uuid: str | None = None
    power_watts: float | None = None
    limit_watts: float | None = None
    default_limit_watts: float | None = None
    least_limit_watts: float | None = None
    most_limit_watts: float | None = None
    celsius: float | None = None
    utilisation: float | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    sm_clock_mhz: int | None = None
    throttle_celsius: float | None = None
    slowdown_celsius: float | None = None
    shutdown_celsius: float | None = None
    fault: str | None = None


def read_nvml_devices() -> list[NvmlDevice]:
    """All GPUs here; none where there is no driver (`nvml_unavailable_reason` says why)."""
    try:
        with _driver() as count:
            return [_read_device(index) for index in range(count)]
    except NvmlUnavailableError:
        return []


def nvml_unavailable_reason() -> str | None:
    """Why no GPU can be read here; None where the driver answers."""
    try:
        with _driver():
            return None
    except NvmlUnavailableError as error:
        return error.message


def nvml_readings(node: str, at: float) -> list[Reading]:
    """What this node's GPUs say; a meter that a device lacks gives no reading."""
    found = []
    for device in read_nvml_devices():
        values = {
            "gpu_watts": device.power_watts,
            "gpu_celsius": device.celsius,
            "gpu_limit_watts": device.limit_watts,
            "gpu_busy_fraction": device.utilisation,
            "gpu_memory_used_bytes": device.memory_used_bytes,
        }
        found += [
            Reading(f"{node}/gpu{device.index}", quantity, float(value), at, "nvml")
            for quantity, value in values.items()
            if value is not None
        ]
    return found


@contextmanager
def _driver() -> Iterator[int]:
    """The driver while it is open, as the number of its devices."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlUnavailableError(
            f"NVML does not start: {error}", hint="install the NVIDIA driver where there are GPUs"
        ) from error
    try:
        try:
            count = int(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError as error:
            raise NvmlUnavailableError(f"NVML counts no devices: {error}") from error
        yield count
    finally:
        pynvml.nvmlShutdown()


def _read_device(index: int) -> NvmlDevice:
    try:
        return _read_meters(index, pynvml.nvmlDeviceGetHandleByIndex(index))
    except pynvml.NVMLError as error:
        return NvmlDevice(index=index, fault=str(error))


def _read_meters(index: int, handle: object) -> NvmlDevice:
    milliwatts = 1e-3
    least_and_most = _ask(lambda: pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle))
    memory = _ask(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    rates = _ask(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))

    def watts(ask: Callable[[object], int]) -> float | None:
        value = _ask(lambda: ask(handle))
        return None if value is None else value * milliwatts

    def threshold_celsius(kind: int) -> float | None:
        return _ask(lambda: float(pynvml.nvmlDeviceGetTemperatureThreshold(handle, kind)))

    return NvmlDevice(
        index=index,
        name=_ask(lambda: str(pynvml.nvmlDeviceGetName(handle))),
        uuid=_ask(lambda: str(pynvml.nvmlDeviceGetUUID(handle))),
        power_watts=watts(pynvml.nvmlDeviceGetPowerUsage),
        limit_watts=watts(pynvml.nvmlDeviceGetEnforcedPowerLimit),
        default_limit_watts=watts(pynvml.nvmlDeviceGetPowerManagementDefaultLimit),
        least_limit_watts=least_and_most[0] * milliwatts if least_and_most else None,
        most_limit_watts=least_and_most[1] * milliwatts if least_and_most else None,
        celsius=_ask(lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))),
        utilisation=rates.gpu / 100.0 if rates else None,
        memory_total_bytes=int(memory.total) if memory else None,
        memory_used_bytes=int(memory.used) if memory else None,
        sm_clock_mhz=_ask(lambda: int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))),
        throttle_celsius=threshold_celsius(pynvml.NVML_TEMPERATURE_THRESHOLD_GPU_MAX),
        slowdown_celsius=threshold_celsius(pynvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN),
        shutdown_celsius=threshold_celsius(pynvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN),
    )


def _ask(meter: Callable[[], _Value]) -> _Value | None:
    try:
        return meter()
    except pynvml.NVMLError as error:
        if error.value in _LACKING:
            return None
        raise
