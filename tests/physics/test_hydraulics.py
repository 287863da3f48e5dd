"""Hydraulics: two of the five published points of a rack give the other three."""

from __future__ import annotations

import csv
import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import shared_data
from wattline.physics.hydraulics import (
    GB300_NVL72_CURVE,
    PASCALS_PER_PSI,
    PG25,
    WATER,
    fit_pressure_curve,
    predict_flow_litres_per_minute,
    predict_pressure_drop_pascals,
    predict_pump_watts,
)


class Published(NamedTuple):
    supply_celsius: float
    litres_per_minute: float
    psi: float

    @property
    def pascals(self) -> float:
        return self.psi * PASCALS_PER_PSI


def read_published() -> list[Published]:
    path = shared_data("gpu_power/lenovo_gb300_nvl72_flow_table.csv")
    with path.open(encoding="utf-8", newline="") as lines:
        return [Published(*map(float, row.values())) for row in csv.DictReader(lines)]


def solve_balance(one: Published, other: Published) -> tuple[float, float]:
    """The heat (W) and return (°C) that both points share."""
    carried = one.litres_per_minute * one.supply_celsius - other.litres_per_minute * other.supply_celsius
    return_celsius = carried / (one.litres_per_minute - other.litres_per_minute)
    litre_watts = predict_flow_litres_per_minute(1.0, one.supply_celsius, return_celsius)
    return one.litres_per_minute / litre_watts, return_celsius


def test_the_coldest_and_the_warmest_point_give_the_three_between() -> None:
    published = read_published()
    assert len(published) == 5
    ends = published[0], published[-1]
    heat_watts, return_celsius = solve_balance(*ends)
    curve = fit_pressure_curve([(point.litres_per_minute, point.pascals) for point in ends])
    for point in published[1:-1]:
        flow = predict_flow_litres_per_minute(heat_watts, point.supply_celsius, return_celsius)
        assert flow == pytest.approx(point.litres_per_minute, rel=0.03)
        assert predict_pressure_drop_pascals(curve, flow) == pytest.approx(point.pascals, rel=0.10)


def test_all_five_points_follow_from_one_heat_and_one_return() -> None:
    for point in read_published():
        flow = predict_flow_litres_per_minute(121_500.0, point.supply_celsius, 54.8)
        assert flow == pytest.approx(point.litres_per_minute, rel=0.03)
        assert predict_pressure_drop_pascals(GB300_NVL72_CURVE, flow) == pytest.approx(
            point.pascals, rel=0.10
        )


def test_the_curve_in_the_code_is_the_fit_over_all_five() -> None:
    fitted = fit_pressure_curve([(point.litres_per_minute, point.pascals) for point in read_published()])
    assert fitted.exponent == pytest.approx(GB300_NVL72_CURVE.exponent, abs=0.01)
    assert fitted.pascals_at_100_litres_per_minute == pytest.approx(
        GB300_NVL72_CURVE.pascals_at_100_litres_per_minute, rel=0.01
    )


def test_glycol_needs_a_little_more_flow_and_more_pressure_than_water() -> None:
    flow = {fluid: predict_flow_litres_per_minute(100_000.0, 30.0, 45.0, fluid) for fluid in (WATER, PG25)}
    assert 1.03 <= flow[PG25] / flow[WATER] <= 1.05
    same_flow = [predict_pressure_drop_pascals(GB300_NVL72_CURVE, 100.0, fluid) for fluid in (WATER, PG25)]
    assert same_flow[1] > same_flow[0]


def test_coolant_that_may_not_warm_up_carries_nothing() -> None:
    assert predict_flow_litres_per_minute(1.0, 30.0, 30.0) == math.inf
    assert predict_flow_litres_per_minute(0.0, 30.0, 30.0) == 0.0


def test_pumping_costs_drop_times_flow() -> None:
    # 100 kPa through 60 L/min, a litre each second, is 100 W of work.
    assert predict_pump_watts(100_000.0, 60.0) == pytest.approx(200.0)


@given(st.floats(10.0, 400.0))
def test_twice_the_flow_costs_nearly_eight_times_the_pumping(flow: float) -> None:
    once, twice = (
        predict_pump_watts(predict_pressure_drop_pascals(GB300_NVL72_CURVE, f), f) for f in (flow, 2.0 * flow)
    )
    assert twice / once == pytest.approx(2.0**2.9)
