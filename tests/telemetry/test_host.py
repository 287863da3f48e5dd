"""Host: memory at once, the CPU share from the second look on."""

from __future__ import annotations

import time

from wattline.telemetry import HostMeter, Reading


def by_quantity(readings: list[Reading]) -> dict[str, float]:
    return {reading.quantity: reading.value for reading in readings}


def test_memory_in_use_is_part_of_what_there_is() -> None:
    told = by_quantity(HostMeter("here/n1").readings(1.0))
    assert 0 < told["memory_used_bytes"] < told["memory_total_bytes"]
    assert "cpu_busy_fraction" not in told


def test_a_spinning_process_shows_in_the_cpu_share() -> None:
    meter = HostMeter("here/n1")
    meter.readings(1.0)
    spin_until = time.monotonic() + 0.2
    while time.monotonic() < spin_until:
        pass
    readings = meter.readings(2.0)
    assert 0.0 < by_quantity(readings)["cpu_busy_fraction"] <= 1.0
    assert {(reading.subject, reading.source, reading.at) for reading in readings} == {
        ("here/n1", "host", 2.0)
    }
