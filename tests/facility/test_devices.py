from __future__ import annotations

import pytest

from wattline.facility import DEVICES, Device

EVERY = pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)


@EVERY
def test_a_device_idles_below_its_limit_and_can_be_capped(device: Device) -> None:
    assert 0 < device.idle_watts < device.limit_watts
    assert 0 < device.least_limit_watts < device.limit_watts


@EVERY
def test_a_device_throttles_before_it_shuts_down(device: Device) -> None:
    assert device.throttle_celsius <= device.slowdown_celsius <= device.shutdown_celsius


@EVERY
def test_liquid_takes_heat_better_than_air(device: Device) -> None:
    assert device.kelvin_per_watt_liquid < device.kelvin_per_watt_air


@EVERY
def test_a_device_at_its_limit_stays_below_throttling_in_cool_air(device: Device) -> None:
    assert 25.0 + device.limit_watts * device.kelvin_per_watt_air < device.throttle_celsius
