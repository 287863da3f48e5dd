"""Fans: the line meets the measured servers, and flow follows the cube root of watts."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import shared_data
from wattline.physics.fans import predict_fan_flow, predict_fan_watts, predict_fan_watts_at_flow


def read_servers() -> list[tuple[float, float]]:
    path = shared_data("gpu_power/azure_server_fan_power.csv")
    with path.open(encoding="utf-8", newline="") as lines:
        return [(float(row["server power"]), float(row["fan power"])) for row in csv.DictReader(lines)]


def test_every_measured_server_is_met_within_five_watts() -> None:
    servers = read_servers()
    assert len(servers) == 8
    for server_watts, fan_watts in servers:
        assert predict_fan_watts(server_watts) == pytest.approx(fan_watts, abs=5.0)


def test_fans_take_a_tenth_of_a_quiet_server_and_a_seventh_of_a_full_one() -> None:
    assert predict_fan_watts(320.0) / 320.0 == pytest.approx(0.09, abs=0.02)
    assert predict_fan_watts(911.0) / 911.0 == pytest.approx(0.15, abs=0.01)


@given(st.floats(0.0, 12_000.0), st.floats(0.0, 12_000.0), st.floats(500.0, 12_000.0))
def test_a_busier_server_never_needs_less_air(one: float, other: float, full_watts: float) -> None:
    quiet, busy = sorted((one, other))
    assert predict_fan_watts(quiet, full_watts) <= predict_fan_watts(busy, full_watts)


def test_a_larger_server_is_the_measured_one_enlarged() -> None:
    assert predict_fan_watts(9114.0, full_server_watts=9114.0) == pytest.approx(
        10.0 * predict_fan_watts(911.4)
    )


@given(st.floats(0.0, 1.0))
def test_half_the_flow_costs_an_eighth(flow_fraction: float) -> None:
    assert predict_fan_watts_at_flow(80.0, 0.5) == pytest.approx(10.0)
    watts = predict_fan_watts_at_flow(80.0, flow_fraction)
    assert predict_fan_flow(watts, 80.0) == pytest.approx(flow_fraction, abs=1e-9)
