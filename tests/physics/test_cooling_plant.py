"""Cooling plant: free when it is cold, dear when it is hot, and warm when it is too hot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.facility import CoolingKind, Loop
from wattline.physics import (
    Weather,
    cooling_of,
    predict_overhead,
    predict_supply_celsius,
    predict_tue,
    predict_warmed,
    predict_weather,
)
from wattline.physics.cooling_plant import (
    PLANTS,
    predict_chilled_fraction,
    predict_chiller_performance,
    predict_distribution_watts,
)

SET_POINTS = {
    CoolingKind.AIR: 22.0,
    CoolingKind.REAR_DOOR: 21.0,
    CoolingKind.DIRECT_TO_CHIP: 32.0,
    CoolingKind.IMMERSION: 38.0,
}
kinds = st.sampled_from(list(CoolingKind))
weathers = st.builds(predict_weather, st.floats(-15.0, 50.0), st.floats(0.05, 1.0))
warmings = st.floats(0.0, 15.0)
loads = st.floats(0.0, 1e6)


def a_loop(kind: CoolingKind, *, supply_celsius: float | None = None, capacity_watts: float = 1e6) -> Loop:
    return Loop(
        name="z/loop",
        kind=kind,
        capacity_watts=capacity_watts,
        supply_celsius=SET_POINTS[kind] if supply_celsius is None else supply_celsius,
        approach_kelvin=5.0,
        time_constant_seconds=30.0,
    )


def overhead(kind: CoolingKind, weather: Weather, it_watts: float = 7e5) -> float:
    return predict_overhead(cooling_of([a_loop(kind)]), weather, it_watts)


@given(kinds, weathers, warmings, loads)
def test_hotter_outside_never_lowers_overhead_or_supply(
    kind: CoolingKind, weather: Weather, kelvin: float, it_watts: float
) -> None:
    hotter = predict_warmed(weather, kelvin)
    assert overhead(kind, hotter, it_watts) >= overhead(kind, weather, it_watts) - 1e-9
    loop = a_loop(kind)
    assert predict_supply_celsius(loop, hotter) >= predict_supply_celsius(loop, weather) - 1e-9


@given(kinds, weathers, loads, loads)
def test_part_load_never_lowers_overhead(
    kind: CoolingKind, weather: Weather, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    assert overhead(kind, weather, less) >= overhead(kind, weather, more) - 1e-12


@given(kinds, weathers, loads)
def test_overhead_is_always_more_than_the_rectifiers_lose(
    kind: CoolingKind, weather: Weather, it_watts: float
) -> None:
    assert overhead(kind, weather, it_watts) > 1.0 / 0.96


def test_an_empty_hall_has_a_finite_overhead() -> None:
    mild = predict_weather(10.0, 0.8)
    assert overhead(CoolingKind.AIR, mild, 0.0) == overhead(CoolingKind.AIR, mild, 5e4) < 10.0


@pytest.mark.parametrize("kind", CoolingKind)
def test_the_chiller_takes_over_along_the_loops_own_rise(kind: CoolingKind) -> None:
    plant, set_point = PLANTS[kind], SET_POINTS[kind]
    free_up_to = set_point - plant.approach_kelvin
    shares = [
        predict_chilled_fraction(kind, set_point, free_up_to + way * plant.rise_kelvin)
        for way in (-1.0, 0.0, 0.5, 1.0, 2.0)
    ]
    assert shares == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0])


def test_a_chiller_works_harder_for_a_colder_set_point_and_a_hotter_day() -> None:
    assert predict_chiller_performance(30.0, 30.0) > predict_chiller_performance(18.0, 30.0)
    assert predict_chiller_performance(22.0, 25.0) > predict_chiller_performance(22.0, 35.0)
    # Half of Carnot from 18 °C to 35 °C: 0.5 × 291.15 / 17.
    assert predict_chiller_performance(22.0, 25.0) == pytest.approx(8.563, abs=1e-3)


def test_towers_follow_the_wet_bulb_and_dry_coolers_the_dry_bulb() -> None:
    dry, humid = predict_weather(34.0, 0.1), predict_weather(34.0, 0.8)
    assert overhead(CoolingKind.AIR, humid) > overhead(CoolingKind.AIR, dry)
    assert overhead(CoolingKind.IMMERSION, humid) == overhead(CoolingKind.IMMERSION, dry)


@pytest.mark.parametrize("kind", CoolingKind)
def test_supply_is_the_set_point_until_the_plant_is_at_its_limit_and_then_follows_outside(
    kind: CoolingKind,
) -> None:
    limit = PLANTS[kind].design_outside_celsius
    loop = a_loop(kind)

    def supply(outside: float) -> float:
        return predict_supply_celsius(loop, Weather(outside, outside, outside))

    assert supply(limit - 20.0) == supply(limit) == loop.supply_celsius
    assert supply(limit + 3.0) == pytest.approx(loop.supply_celsius + 3.0)


def test_a_loop_that_is_warm_enough_for_outside_air_has_no_chiller_to_outgrow() -> None:
    loop = a_loop(CoolingKind.DIRECT_TO_CHIP, supply_celsius=52.0)
    assert predict_supply_celsius(loop, Weather(43.0, 20.0, 5.0)) == 52.0
    assert predict_supply_celsius(loop, Weather(45.0, 20.0, 5.0)) == pytest.approx(54.0)


def test_a_site_is_the_mean_of_its_loops_by_capacity() -> None:
    weather = predict_weather(20.0, 0.6)
    air = a_loop(CoolingKind.AIR, capacity_watts=3e6)
    tanks = a_loop(CoolingKind.IMMERSION, capacity_watts=1e6)
    both = predict_overhead(cooling_of([air, tanks]), weather, 4e6)
    alone = [predict_overhead(cooling_of([loop]), weather, loop.capacity_watts) for loop in (air, tanks)]
    assert both == pytest.approx(0.75 * alone[0] + 0.25 * alone[1])


def test_many_like_loops_are_as_one() -> None:
    parts = cooling_of([a_loop(CoolingKind.AIR, capacity_watts=1e4)] * 100)
    assert len(parts.parts) == 1
    weather = predict_weather(20.0, 0.6)
    assert predict_overhead(parts, weather, 5e5) == pytest.approx(overhead(CoolingKind.AIR, weather, 5e5))


def test_rectifiers_lose_a_fixed_part_and_four_percent() -> None:
    assert predict_distribution_watts(12_500.0, 12_500.0) == pytest.approx((12_500.0 + 17.0) / 0.96)
    assert predict_distribution_watts(0.0, 125_000.0) == pytest.approx(10 * 17.0 / 0.96)


def test_tue_counts_fans_and_supplies_as_overhead() -> None:
    assert predict_tue(1.2, 1000.0, 0.0, 0.0) == 1.2
    assert predict_tue(1.2, 1000.0, 150.0, 50.0) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="leave nothing"):
        predict_tue(1.2, 100.0, 90.0, 10.0)
