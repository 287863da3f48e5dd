"""Energy: counters are believed before watts, and only of nodes that an attempt runs on."""

from __future__ import annotations

import pytest

from wattline.live.energy import Energy
from wattline.telemetry import Reading

NODE = "zurich/r1-n1"


def gpus(quantity: str, at: float, *values: float, node: str = NODE) -> list[Reading]:
    return [Reading(f"{node}/gpu{n}", quantity, value, at, "prometheus") for n, value in enumerate(values)]


def test_watts_are_counted_over_the_time_between_two_readings() -> None:
    energy = Energy()
    energy.attach("r/train/1", {NODE: 0.5})
    for at in (10.0, 20.0, 20.0, 30.0):
        energy.count(gpus("gpu_watts", at, 300.0, 100.0))
    assert energy.joules("r/train/1") == pytest.approx(0.5 * 400 * 20)


def test_a_counter_counts_instead_and_one_that_begins_anew_loses_little() -> None:
    energy = Energy()
    energy.attach("r/train/1", {NODE: 1.0})
    for at, value in ((10.0, 5000.0), (20.0, 8000.0), (30.0, 100.0), (40.0, 600.0)):
        energy.count([*gpus("gpu_watts", at, 999.0), *gpus("gpu_joules", at, value)])
    assert energy.detach("r/train/1") == pytest.approx(3000 + 100 + 500)
    assert "r/train/1" not in energy


def test_other_nodes_are_not_counted() -> None:
    energy = Energy()
    energy.attach("r/train/1", {NODE: 1.0})
    for at in (1.0, 2.0):
        energy.count(gpus("gpu_watts", at, 300.0, node="zurich/r9-n9"))
    assert energy.joules("r/train/1") == 0.0
