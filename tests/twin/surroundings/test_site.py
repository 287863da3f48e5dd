"""Surroundings of a site: its constants for ever, or what its series say."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building import a_facility, a_site
from shared_data import shared_data
from wattline.errors import DocumentError
from wattline.facility import CoolingKind
from wattline.physics import Weather
from wattline.spec import read_facility
from wattline.twin.surroundings import (
    HourlySurroundings,
    Integral,
    SeriesPaths,
    SeriesSource,
    Surroundings,
    surroundings_by_site,
    surroundings_of,
)
from wattline.twin.surroundings.weather_files import read_weather

JANUARY = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
JULY = datetime(2024, 7, 20, 22, tzinfo=UTC).timestamp()
HOUR = 3600.0
PRICES = "time,usd_per_kwh\n2024-01-01T00:00,0.1\n2024-01-01T01:00,-0.2\n2024-01-01T02:00,0.4\n"


FACILITY = """\
facility: f
sites:
  z:
    region: eu
    tariff: {energy: 0.1, series: series/price.csv}
    carbon: {zone: DE, intensity: 350, series: carbon.csv.gz}
    weather: {series: weather.json.gz}
    feeds: {a: {rating: 20kW}}
    loops: {crah: {kind: air, capacity: 20kW, supply: 22C}}
    storage: {throughput: 1GB/s}
    racks: {r1: {cap: 8kW, power: [a], loop: crah, nodes: {other: 400W}}}
"""
# Kind, usual set point, and the least and most that is published for a year's PUE.
KINDS = [
    (CoolingKind.AIR, 22.0, 1.4, 1.6),
    (CoolingKind.REAR_DOOR, 21.0, 1.2, 1.35),
    (CoolingKind.DIRECT_TO_CHIP, 32.0, 1.05, 1.2),
    (CoolingKind.IMMERSION, 38.0, 1.02, 1.1),
]


@cache
def a_year_in(file: str) -> list[Weather]:
    return read_weather(shared_data(f"weather/{file}.gz"))[0]


def mean_overhead(kind: CoolingKind, supply_celsius: float, file: str, load_fraction: float) -> float:
    site = a_site(loop_watts=1e6, supply_celsius=supply_celsius)
    site = replace(site, loops=tuple(replace(loop, kind=kind) for loop in site.loops))
    around = HourlySurroundings(site, weather=a_year_in(file))
    return fmean(around.overhead(JANUARY + hour * HOUR, load_fraction * 1e6) for hour in range(8784))


def in_germany() -> Surroundings:
    return surroundings_of(
        a_site(),
        overrides=SeriesPaths(
            price=shared_data("price/usd_mwh_2024_DE-LU.csv.gz"),
            carbon=shared_data("carbon/emaps_2024_DE-LU.csv.gz"),
            weather=shared_data("weather/openmeteo_2024_DE-LU.json.gz"),
        ),
    )


def test_without_series_a_site_has_its_constants_for_ever() -> None:
    site = replace(a_site(), pue=1.3)
    around = surroundings_of(site)
    for at in (0.0, JANUARY, JULY):
        assert around.usd_per_kwh(at) == site.usd_per_kwh
        assert around.grams_co2_per_kwh(at) == site.grams_co2_per_kwh
        assert around.overhead(at, 1e3) == around.overhead(at, 1e9) == 1.3
        assert around.supply_celsius(site.loops[0], at) == site.loops[0].supply_celsius
        assert around.dry_bulb_celsius(at) is around.wet_bulb_celsius(at) is None
        assert around.next_change_at(at) == math.inf
    assert around.sources == ()


def test_shipped_facilities_name_no_series() -> None:
    for name in ("lab", "philly-800", "three-sites"):
        facility = read_facility(name)
        around = surroundings_by_site(facility)
        assert list(around) == [site.name for site in facility.sites]
        assert all(one.sources == () for one in around.values())


def test_a_series_is_found_beside_the_facilitys_file(tmp_path: Path) -> None:
    (tmp_path / "series").mkdir()
    (tmp_path / "series" / "price.csv").write_text(PRICES)
    shutil.copy(shared_data("carbon/emaps_2024_DE-LU.csv.gz"), tmp_path / "carbon.csv.gz")
    shutil.copy(shared_data("weather/openmeteo_2024_DE-LU.json.gz"), tmp_path / "weather.json.gz")
    (tmp_path / "facility.yaml").write_text(FACILITY)
    around = surroundings_by_site(read_facility(tmp_path / "facility.yaml"))["z"]
    assert around.sources == (
        SeriesSource("price", str(tmp_path / "series" / "price.csv"), 8784 - 24 - 3),
        SeriesSource("carbon", str(tmp_path / "carbon.csv.gz"), 0),
        SeriesSource("weather", str(tmp_path / "weather.json.gz"), 0),
    )
    assert around.usd_per_kwh(JANUARY + HOUR) == -0.2
    assert around.grams_co2_per_kwh(JANUARY) == 177.74
    assert around.overhead(JANUARY, 1e4) > 1.3


@pytest.mark.parametrize("file", ["series/price.csv", "carbon.csv.gz", "weather.json.gz"])
def test_a_series_lies_in_the_facilitys_own_folder(tmp_path: Path, file: str) -> None:
    path = tmp_path / "facility.yaml"
    path.write_text(FACILITY.replace(file, f"../{file}"))
    with pytest.raises(DocumentError, match=r"series: a path stays inside the folder of its document"):
        read_facility(path)


def test_a_file_named_instead_wins(tmp_path: Path) -> None:
    for name, price in (("own.csv", "1"), ("other.csv", "2")):
        (tmp_path / name).write_text(f"time,usd_per_kwh\n2024-01-01,{price}\n")
    site = replace(a_site(), price_series="own.csv")
    assert surroundings_of(site, tmp_path).usd_per_kwh(JANUARY) == 1.0
    instead = SeriesPaths(price=tmp_path / "other.csv")
    assert surroundings_of(site, tmp_path, instead).usd_per_kwh(JANUARY) == 2.0
    by_site = surroundings_by_site(a_facility(replace(site, price_series="")), {"zurich": instead})
    assert by_site["zurich"].usd_per_kwh(JANUARY) == 2.0


def test_everything_may_change_on_the_hour_and_not_before() -> None:
    around = in_germany()
    assert around.next_change_at(JANUARY) == JANUARY + HOUR
    assert around.next_change_at(JANUARY + 3599.5) == JANUARY + HOUR
    values = [
        (around.usd_per_kwh(at), around.grams_co2_per_kwh(at), around.overhead(at, 1e6), around.weather(at))
        for at in (JULY, JULY + 1800.0, JULY + 3599.0)
    ]
    assert values[0] == values[1] == values[2]


def test_cooling_costs_more_in_july_than_in_january() -> None:
    around = in_germany()
    assert around.overhead(JULY, 7e8) > around.overhead(JANUARY, 7e8)
    dry_bulb, wet_bulb = around.dry_bulb_celsius(JULY), around.wet_bulb_celsius(JULY)
    assert dry_bulb is not None
    assert wet_bulb is not None
    assert 10.0 < wet_bulb < dry_bulb < 40.0


@pytest.mark.parametrize(("kind", "set_point", "least", "most"), KINDS)
@pytest.mark.parametrize("load_fraction", [0.5, 1.0])
@pytest.mark.parametrize("place", ["DE-LU", "US-CAL-CISO"])
def test_a_temperate_year_lands_in_the_published_range(
    kind: CoolingKind, set_point: float, least: float, most: float, load_fraction: float, place: str
) -> None:
    mean = mean_overhead(kind, set_point, f"openmeteo_2024_{place}.json", load_fraction)
    assert least <= mean <= most


def test_kinds_keep_their_order_through_a_year_in_the_desert() -> None:
    file = "tmy3_USA_AZ_Phoenix-Sky.Harbor.epw"
    means = [mean_overhead(kind, set_point, file, 0.7) for kind, set_point, _, _ in KINDS]
    assert means == sorted(means, reverse=True)


def test_energy_is_priced_by_the_hours_it_was_drawn_in(tmp_path: Path) -> None:
    path = tmp_path / "price.csv"
    path.write_text(PRICES)
    around = surroundings_of(a_site(), overrides=SeriesPaths(price=path))
    # Half an hour at 0.1 and an hour at -0.2: the grid paid.
    span = around.integrate(JANUARY + 0.5 * HOUR, JANUARY + 2 * HOUR)
    assert span.hours == 1.5
    assert span.usd(3.0) == pytest.approx(3.0 * (0.05 - 0.2) / 1.5)
    assert span.carbon_kg(3.0) == pytest.approx(3.0 * 0.1)


def test_nothing_is_drawn_in_no_time() -> None:
    assert surroundings_of(a_site()).integrate(JANUARY, JANUARY) == Integral(0.0, 0.0, 0.0)
    assert Integral(0.0, 0.0, 0.0).usd(0.0) == Integral(0.0, 0.0, 0.0).carbon_kg(0.0) == 0.0


@given(st.floats(0, 9000), st.floats(0, 400), st.floats(0, 400))
def test_two_spans_in_a_row_add_up(start: float, one: float, other: float) -> None:
    around = surroundings_of(a_site())
    begin = JANUARY + start * HOUR
    middle, end = begin + one * HOUR, begin + (one + other) * HOUR
    whole, parts = (
        around.integrate(begin, end),
        (around.integrate(begin, middle), around.integrate(middle, end)),
    )
    assert whole.usd_hours == pytest.approx(sum(part.usd_hours for part in parts), abs=1e-6)
    assert whole.grams_hours == pytest.approx(sum(part.grams_hours for part in parts), abs=1e-6)
