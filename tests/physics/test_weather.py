"""Weather: the wet bulb meets psychrometric tables and moves the right way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattline.physics import predict_dew_point, predict_warmed, predict_weather, predict_wet_bulb

temperatures = st.floats(-15.0, 50.0)
humidities = st.floats(0.0, 1.0)
warmings = st.floats(0.0, 15.0)


@pytest.mark.parametrize(
    ("dry_bulb", "humidity", "wet_bulb"),
    [(10, 0.8, 8.2), (20, 0.5, 13.8), (25, 0.6, 19.5), (30, 0.5, 22.1), (35, 0.4, 24.0), (40, 0.2, 22.2)],
)
def test_the_wet_bulb_is_what_psychrometric_tables_say(
    dry_bulb: float, humidity: float, wet_bulb: float
) -> None:
    assert predict_wet_bulb(dry_bulb, humidity) == pytest.approx(wet_bulb, abs=0.6)


def test_the_wet_bulb_is_what_its_author_computes() -> None:
    assert predict_wet_bulb(20.0, 0.5) == pytest.approx(13.7, abs=0.05)


@pytest.mark.parametrize(
    ("dry_bulb", "humidity", "dew_point"), [(20, 0.5, 9.3), (25, 0.6, 16.7), (30, 1, 30)]
)
def test_the_dew_point_is_what_psychrometric_tables_say(
    dry_bulb: float, humidity: float, dew_point: float
) -> None:
    assert predict_dew_point(dry_bulb, humidity) == pytest.approx(dew_point, abs=0.1)


@given(temperatures, humidities)
def test_evaporation_never_warms(dry_bulb: float, humidity: float) -> None:
    weather = predict_weather(dry_bulb, humidity)
    assert weather.wet_bulb_celsius <= weather.dry_bulb_celsius
    assert weather.dew_point_celsius <= weather.dry_bulb_celsius + 1e-9


@given(temperatures, humidities, warmings)
def test_hotter_air_of_the_same_humidity_has_a_higher_wet_bulb(
    dry_bulb: float, humidity: float, kelvin: float
) -> None:
    assert predict_wet_bulb(dry_bulb + kelvin, humidity) >= predict_wet_bulb(dry_bulb, humidity)


@given(temperatures, st.floats(0.05, 1.0), warmings, warmings)
def test_air_that_is_warmed_more_is_nowhere_colder(
    dry_bulb: float, humidity: float, one: float, other: float
) -> None:
    weather = predict_weather(dry_bulb, humidity)
    less, more = (predict_warmed(weather, kelvin) for kelvin in sorted((one, other)))
    assert more.dry_bulb_celsius >= less.dry_bulb_celsius
    assert more.wet_bulb_celsius >= less.wet_bulb_celsius - 1e-9


@given(temperatures, st.floats(0.05, 1.0))
def test_air_that_is_not_warmed_stays_as_it_is(dry_bulb: float, humidity: float) -> None:
    weather = predict_weather(dry_bulb, humidity)
    assert predict_warmed(weather, 0.0).wet_bulb_celsius == pytest.approx(weather.wet_bulb_celsius, abs=1e-6)


def test_a_heatwave_moves_the_wet_bulb_by_a_third_because_no_water_comes_with_it() -> None:
    weather = predict_weather(28.0, 0.5)
    warmed = predict_warmed(weather, 6.0)
    assert warmed.dew_point_celsius == weather.dew_point_celsius
    assert 1.0 < warmed.wet_bulb_celsius - weather.wet_bulb_celsius < 3.0


def test_air_that_is_cooled_below_its_dew_point_is_saturated() -> None:
    cooled = predict_warmed(predict_weather(20.0, 0.5), -15.0)
    assert cooled.dew_point_celsius == cooled.dry_bulb_celsius == 5.0
    assert cooled.wet_bulb_celsius == pytest.approx(5.0, abs=0.3)
