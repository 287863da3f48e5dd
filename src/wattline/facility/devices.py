"""GPUs by name: limits, idle draw and temperatures, with how sure each figure is.

`sure` is "measured" (seen in a maker's or operator's data), "secondary" (one second-hand source) or
"assumed" (no source at hand: a default that a site should fit from its own telemetry).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU model."""

    name: str
    limit_watts: float
    least_limit_watts: float
    idle_watts: float
    throttle_celsius: float  # the highest it works at without giving up speed
    slowdown_celsius: float
    shutdown_celsius: float
    kelvin_per_watt_air: float
    kelvin_per_watt_liquid: float
    usd_per_hour: float
    sure: str


def _device(name: str, *figures: float, sure: str) -> Device:
    limit, least, idle, throttle, slowdown, shutdown, air, liquid, usd = figures
    return Device(
        name=name,
        limit_watts=limit,
        least_limit_watts=least,
        idle_watts=idle,
        throttle_celsius=throttle,
        slowdown_celsius=slowdown,
        shutdown_celsius=shutdown,
        kelvin_per_watt_air=air,
        kelvin_per_watt_liquid=liquid,
        usd_per_hour=usd,
        sure=sure,
    )


# Hourly prices are defaults for comparing places; a facility states its own.
DEVICES: dict[str, Device] = {
    device.name: device
    for device in (
        #                  limit least idle throttle slow shut  K/W air  liquid USD/h
        _device("V100", 250.0, 100.0, 40.0, 83.0, 87.0, 90.0, 0.15, 0.080, 0.90, sure="assumed"),
        _device("A100", 400.0, 100.0, 68.0, 85.0, 89.0, 92.0, 0.10, 0.050, 1.60, sure="measured"),
        _device("H100", 700.0, 200.0, 72.0, 87.0, 89.0, 95.0, 0.055, 0.040, 2.60, sure="measured"),
        _device("H200", 700.0, 200.0, 75.0, 87.0, 89.0, 95.0, 0.055, 0.040, 3.10, sure="secondary"),
        _device("B200", 1000.0, 200.0, 195.0, 88.0, 91.0, 93.0, 0.030, 0.027, 4.20, sure="secondary"),
    )
}
