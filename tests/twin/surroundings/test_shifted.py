"""Shifted surroundings: a heatwave and a grid event, while they last."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import a_site
from wattline.physics import predict_weather
from wattline.twin.surroundings import Change, HourlySeries, HourlySurroundings, Shifted, surroundings_of

START = datetime(2024, 7, 20, tzinfo=UTC).timestamp()
END = START + 72 * 3600.0
HOUR = 3600.0
SITE = a_site(loop_watts=1e6, supply_celsius=22.0)
LOOP = SITE.loops[0]
BASE = HourlySurroundings(
    SITE,
    price=HourlySeries([(hour % 24) / 100.0 - 0.05 for hour in range(8784)]),
    weather=[predict_weather(20.0 + (hour % 24) / 2.0, 0.6) for hour in range(8784)],
)
WAVE = Shifted(BASE, start=START, end=END, dry_bulb_kelvin=9.0)


def test_a_heatwave_warms_the_air_while_it_lasts() -> None:
    for at, kelvin in ((START - 1.0, 0.0), (START, 9.0), (END - 1.0, 9.0), (END, 0.0)):
        before, after = BASE.dry_bulb_celsius(at), WAVE.dry_bulb_celsius(at)
        assert before is not None
        assert after == pytest.approx(before + kelvin)


@given(st.floats(START - 1e5, END + 1e5), st.floats(1e3, 1e6))
def test_a_heatwave_never_lowers_overhead_or_supply(at: float, it_watts: float) -> None:
    assert WAVE.overhead(at, it_watts) >= BASE.overhead(at, it_watts)
    assert WAVE.supply_celsius(LOOP, at) >= BASE.supply_celsius(LOOP, at)


def test_a_heatwave_beyond_the_plants_limit_warms_the_supply() -> None:
    afternoon = START + 23 * HOUR
    assert BASE.supply_celsius(LOOP, afternoon) == 22.0
    assert WAVE.supply_celsius(LOOP, afternoon) > 22.5


def test_where_the_weather_is_not_known_the_plant_counts_as_one_at_its_limit() -> None:
    wave = Shifted(surroundings_of(SITE), start=START, end=END, dry_bulb_kelvin=6.0)
    assert [wave.supply_celsius(LOOP, at) for at in (START - 1.0, START, END)] == [22.0, 28.0, 22.0]
    assert wave.overhead(START, 1e5) == SITE.pue
    assert wave.dry_bulb_celsius(START) is None
    cold = Shifted(surroundings_of(SITE), start=START, end=END, dry_bulb_kelvin=-6.0)
    assert cold.supply_celsius(LOOP, START) == 22.0


def test_a_grid_event_multiplies_or_sets_price_and_carbon() -> None:
    dear = Shifted(BASE, start=START, end=END, price=Change(to=2.0), carbon=Change(factor=1.5))
    noon = START + 12 * HOUR
    assert (dear.usd_per_kwh(noon), dear.grams_co2_per_kwh(noon)) == (2.0, 150.0)
    assert dear.usd_per_kwh(END + HOUR) == BASE.usd_per_kwh(END + HOUR)
    assert dear.grams_co2_per_kwh(START - 1.0) == 100.0
    assert dear.overhead(noon, 5e5) == BASE.overhead(noon, 5e5)


@given(
    st.floats(-100.0, 200.0),
    st.floats(0.0, 100.0),
    st.one_of(st.builds(Change, st.floats(0, 10)), st.builds(Change, to=st.floats(-1, 10))),
)
def test_energy_is_priced_as_it_was_at_every_hour(begin: float, hours: float, price: Change) -> None:
    dear = Shifted(BASE, start=START, end=END, price=price, carbon=Change(factor=2.0))
    here, end = START + begin * HOUR, START + (begin + hours) * HOUR
    told = dear.integrate(here, end)
    usd_hours = grams_hours = 0.0
    while here < end:
        until = min(end, dear.next_change_at(here))
        usd_hours += dear.usd_per_kwh(here) * (until - here) / HOUR
        grams_hours += dear.grams_co2_per_kwh(here) * (until - here) / HOUR
        here = until
    assert told.usd_hours == pytest.approx(usd_hours, abs=1e-5)
    assert told.grams_hours == pytest.approx(grams_hours, abs=1e-3)


def test_an_event_within_a_heatwave_keeps_both() -> None:
    both = Shifted(WAVE, start=START + HOUR, end=START + 2 * HOUR, price=Change(to=5.0))
    at = START + 1.5 * HOUR
    assert both.usd_per_kwh(at) == 5.0
    assert both.weather(at) == WAVE.weather(at) != BASE.weather(at)
    assert both.sources == BASE.sources


def test_edges_of_an_event_are_changes() -> None:
    wave = Shifted(surroundings_of(SITE), start=START + 90.0, end=END + 30.0, dry_bulb_kelvin=1.0)
    assert wave.next_change_at(START) == START + 90.0
    assert wave.next_change_at(START + 90.0) == END + 30.0
    assert wave.next_change_at(END + 30.0) == math.inf
    nested = Shifted(BASE, start=START + 90.0, end=END, dry_bulb_kelvin=1.0)
    assert nested.next_change_at(START) == START + 90.0
    assert nested.next_change_at(START + 90.0) == START + HOUR
