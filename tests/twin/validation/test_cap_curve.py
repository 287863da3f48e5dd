"""Cap curve: how far is the speed that the twin gives a capped job from what was measured?"""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import pytest

from physics.test_cap_curve import read_points
from wattline.facility import DEVICES, CoolingKind, Device, Loop, Node
from wattline.physics.cap_curve import CapPoint
from wattline.twin.truth.kind import Kind
from wattline.twin.truth.lots import Lots

V100 = DEVICES["V100"]
MEASURED = {"v100": V100, "rtx6000": replace(V100, limit_watts=260.0)}


def speed_of(device: Device, point: CapPoint) -> float:
    """What the twin gives it."""
    node = Node(name="s/r-n1", rack="s/r", device=device, gpus=8, cpus=8, other_watts=800.0)
    loop = Loop(
        name="s/l",
        kind=CoolingKind.AIR,
        capacity_watts=1e5,
        supply_celsius=22.0,
        approach_kelvin=5.0,
        time_constant_seconds=60.0,
    )
    kind, span_watts = Kind(node, loop, "s", Lots(seed=0, exact=True)), device.limit_watts - device.idle_watts
    utilisation = (point.uncapped_watts - device.idle_watts) / span_watts
    return kind.power_speed(utilisation, point.cap_watts / device.limit_watts)


def error_of(device: Device, points: list[CapPoint]) -> float:
    """Mean and absolute, in per cent of the speed without a cap."""
    return 100.0 * mean(abs(speed_of(device, point) - point.speed) for point in points)


@pytest.mark.parametrize("name", MEASURED)
def test_a_capped_job_is_as_fast_as_was_measured(name: str) -> None:
    """Also on a device that the curve was not fitted to."""
    every = [point for points in read_points(name).values() for point in points]
    assert error_of(MEASURED[name], every) <= 5.0


@pytest.mark.parametrize("name", MEASURED)
def test_the_cliff_is_there_for_whoever_wants_much(name: str) -> None:
    hungry = [p for points in read_points(name).values() for p in points if p.uncapped_watts > 200.0]
    deep, shallow = (
        mean(speed_of(MEASURED[name], point) for point in hungry if point.cap_watts == cap)
        for cap in (100.0, 150.0)
    )
    assert deep < 0.6 < 0.8 < shallow
