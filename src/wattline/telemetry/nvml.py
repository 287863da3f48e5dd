"""NVML: what do this machine's GPUs say about themselves? Reads only; nothing here sets anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pynvml

from wattline.errors import UnavailableError
from wattline.facility import Site, Source
from wattline.telemetry.labels import Labels
from wattline.telemetry.reading import Reading
from wattline.telemetry.remarks import Remarks
from wattline.telemetry.sifting import Sample, Sieve

_Value = TypeVar("_Value")

_METERS = {
    "gpu_watts": "power_watts",
    "gpu_celsius": "celsius",
    "gpu_limit_watts": "limit_watts",
    "gpu_busy_fraction": "utilisation",
    "gpu_joules": "energy_joules",
    "gpu_power_violation_seconds": "power_violation_seconds",
    "gpu_thermal_violation_seconds": "thermal_violation_seconds",
}
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
    energy_joules: float | None = None  # since the driver was loaded
    power_violation_seconds: float | None = None  # how long it was held back by its power limit
    thermal_violation_seconds: float | None = None
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


class NvmlSource:
    """The GPUs of this machine, which is the site's every node."""

    kind = "nvml"

    def __init__(self, site: Site, source: Source) -> None:
        self.site, self.every_seconds = site.name, source.every_seconds
        self.remarks = Remarks()
        self._labels = Labels(site, {})
        self._sieve = Sieve(self.kind, site, self._labels, self.remarks, source.every_seconds)

    def read(self, now: float) -> list[Reading]:
        """What the GPUs say; a meter that a device lacks gives no reading."""
        devices = read_nvml_devices()
        if not devices:
            raise NvmlUnavailableError(nvml_unavailable_reason() or "NVML finds no GPU in this machine")
        for device in devices:
            say = None if device.fault is None else f"GPU {device.index} cannot be read: {device.fault}"
            self.remarks.hold(self.site, f"GPU {device.index}", say, f"GPU {device.index} is read again")
            lacks = [quantity for quantity, meter in _METERS.items() if getattr(device, meter) is None]
            say = f"GPU {device.index} tells no {', '.join(lacks)}{_without(lacks)}"
            is_lacking = bool(lacks) and device.fault is None
            self.remarks.hold(self.site, f"GPU {device.index} lacks", say if is_lacking else None)
        most = max(self._labels.gpus.values(), default=0)
        say = f"this machine has {len(devices)} GPUs, and its node in the facility {most}"
        self.remarks.hold(self.site, "GPUs here", say if len(devices) < most else None)
        found = []
        for quantity, meter in _METERS.items():
            samples = {
                f"{node}/gpu{device.index}": Sample(now, float(value), node)
                for node, gpus in self._labels.gpus.items()
                for device in devices[:gpus]
                if (value := getattr(device, meter)) is not None
            }
            found += self._sieve.sift(quantity, f"{quantity} (NVML)", samples, now)
        return found

    def close(self) -> None: ...


def _without(lacking: list[str]) -> str:
    """What follows from a counter that is not there."""
    if "gpu_joules" in lacking and "gpu_watts" not in lacking:
        return "; energy is counted from watts instead"
    return ""


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
    least_and_most = _ask(lambda: pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle))
    memory = _ask(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    rates = _ask(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle))

    def milli(ask: Callable[[object], int]) -> float | None:
        value = _ask(lambda: ask(handle))
        return None if value is None else value * 1e-3

    def violation_seconds(policy: int) -> float | None:
        return _ask(lambda: 1e-9 * pynvml.nvmlDeviceGetViolationStatus(handle, policy).violationTime)

    def threshold_celsius(kind: int) -> float | None:
        return _ask(lambda: float(pynvml.nvmlDeviceGetTemperatureThreshold(handle, kind)))

    return NvmlDevice(
        index=index,
        name=_ask(lambda: str(pynvml.nvmlDeviceGetName(handle))),
        uuid=_ask(lambda: str(pynvml.nvmlDeviceGetUUID(handle))),
        power_watts=milli(pynvml.nvmlDeviceGetPowerUsage),
        limit_watts=milli(pynvml.nvmlDeviceGetEnforcedPowerLimit),
        default_limit_watts=milli(pynvml.nvmlDeviceGetPowerManagementDefaultLimit),
        least_limit_watts=least_and_most[0] * 1e-3 if least_and_most else None,
        most_limit_watts=least_and_most[1] * 1e-3 if least_and_most else None,
        celsius=_ask(lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))),
        utilisation=rates.gpu / 100.0 if rates else None,
        memory_total_bytes=int(memory.total) if memory else None,
        memory_used_bytes=int(memory.used) if memory else None,
        sm_clock_mhz=_ask(lambda: int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))),
        energy_joules=milli(pynvml.nvmlDeviceGetTotalEnergyConsumption),
        power_violation_seconds=violation_seconds(pynvml.NVML_PERF_POLICY_POWER),
        thermal_violation_seconds=violation_seconds(pynvml.NVML_PERF_POLICY_THERMAL),
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
