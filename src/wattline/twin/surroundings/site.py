"""Surroundings: what does a site pay, emit and breathe at this hour, and what does its plant make of it?"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wattline.facility import Facility, Loop, Site
from wattline.physics import carbon_kg, cooling_of, energy_usd, predict_overhead, predict_supply_celsius
from wattline.physics.normals import predict_year
from wattline.physics.weather import Weather
from wattline.twin.surroundings.files import shown
from wattline.twin.surroundings.series import Constant, HourlySeries, hour_of_leap_year
from wattline.twin.surroundings.tables import read_carbon, read_price
from wattline.twin.surroundings.weather_files import read_weather
from wattline.units import SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class Integral:
    """Price and carbon over a span, each times its hours."""

    hours: float
    usd_hours: float  # USD/kWh · h
    grams_hours: float  # gCO2e/kWh · h

    def usd(self, kwh: float) -> float:
        """What so much energy costs when it is drawn evenly; nothing is drawn in no time."""
        return energy_usd(kwh, self.usd_hours / self.hours) if self.hours > 0.0 else 0.0

    def carbon_kg(self, kwh: float) -> float:
        return carbon_kg(kwh, self.grams_hours / self.hours) if self.hours > 0.0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPaths:
    """Files to read instead of those that a site names."""

    price: Path | None = None
    carbon: Path | None = None
    weather: Path | None = None


@dataclass(frozen=True, slots=True)
class SeriesSource:
    """A file that was read, and how many of a leap year's 8784 hours it did not have."""

    what: str  # price | carbon | weather
    file: str
    filled_hours: int


class Surroundings(ABC):
    """What one site stands in; everything is constant within an hour."""

    def __init__(self, site: Site, sources: tuple[SeriesSource, ...]) -> None:
        self.site = site
        self.sources = sources
        self._cooling = cooling_of(site.loops)

    @abstractmethod
    def weather(self, at: float) -> Weather | None:
        """Outside air; None where nobody knows it."""

    @abstractmethod
    def usd_per_kwh(self, at: float) -> float:
        """Below zero when the grid pays."""

    @abstractmethod
    def grams_co2_per_kwh(self, at: float) -> float: ...

    @abstractmethod
    def next_change_at(self, at: float) -> float:
        """When anything here may next be another; infinite where nothing ever is."""

    @abstractmethod
    def integrate(self, start: float, end: float) -> Integral:
        """What price and carbon add up to between two times, in constant time."""

    def supply_celsius(self, loop: Loop, at: float) -> float:
        """What the plant gives a loop: its set point, or warmer when outside is too hot for it."""
        weather = self.weather(at)
        return loop.supply_celsius if weather is None else predict_supply_celsius(loop, weather)

    def overhead(self, at: float, it_watts: float) -> float:
        """PUE at this hour and load; what the site states where its weather is not known."""
        weather = self.weather(at)
        return self.site.pue if weather is None else predict_overhead(self._cooling, weather, it_watts)

    def dry_bulb_celsius(self, at: float) -> float | None:
        weather = self.weather(at)
        return None if weather is None else weather.dry_bulb_celsius

    def wet_bulb_celsius(self, at: float) -> float | None:
        weather = self.weather(at)
        return None if weather is None else weather.wet_bulb_celsius


class HourlySurroundings(Surroundings):
    """What series say, and a site's constants where there is none."""

    def __init__(
        self,
        site: Site,
        *,
        price: HourlySeries | None = None,
        carbon: HourlySeries | None = None,
        weather: list[Weather] | None = None,
        sources: tuple[SeriesSource, ...] = (),
    ) -> None:
        super().__init__(site, sources)
        self._price = price or Constant(site.usd_per_kwh)
        self._carbon = carbon or Constant(site.grams_co2_per_kwh)
        self._weather = weather
        self._changes = any(part is not None for part in (price, carbon, weather))

    def weather(self, at: float) -> Weather | None:
        return None if self._weather is None else self._weather[hour_of_leap_year(at)]

    def usd_per_kwh(self, at: float) -> float:
        return self._price.at(at)

    def grams_co2_per_kwh(self, at: float) -> float:
        return self._carbon.at(at)

    def next_change_at(self, at: float) -> float:
        return (math.floor(at / SECONDS_PER_HOUR) + 1) * SECONDS_PER_HOUR if self._changes else math.inf

    def integrate(self, start: float, end: float) -> Integral:
        hours = (end - start) / SECONDS_PER_HOUR
        return Integral(hours, self._price.integral(start, end), self._carbon.integral(start, end))


def surroundings_of(
    site: Site, folder: Path = Path(), overrides: SeriesPaths | None = None
) -> HourlySurroundings:
    """Read the series that a site names, beside its facility's file in `folder`, or those named instead."""
    named = SeriesPaths(
        price=folder / site.price_series if site.price_series else None,
        carbon=folder / site.carbon_series if site.carbon_series else None,
        weather=folder / site.weather_series if site.weather_series else None,
    )
    instead = overrides or SeriesPaths()
    sources: list[SeriesSource] = []
    price = carbon = weather = None
    if path := instead.price or named.price:
        price, filled = read_price(path)
        sources.append(SeriesSource("price", shown(path), filled))
    if path := instead.carbon or named.carbon:
        carbon, filled = read_carbon(path)
        sources.append(SeriesSource("carbon", shown(path), filled))
    if path := instead.weather or named.weather:
        weather, filled = read_weather(path)
        sources.append(SeriesSource("weather", shown(path), filled))
    elif site.weather_normals is not None:
        weather = predict_year(site.weather_normals)
    return HourlySurroundings(site, price=price, carbon=carbon, weather=weather, sources=tuple(sources))


def surroundings_by_site(
    facility: Facility, overrides: Mapping[str, SeriesPaths] | None = None
) -> dict[str, Surroundings]:
    """The surroundings of every site; `overrides` go by the site's name."""
    folder = Path(facility.source).parent
    named = overrides or {}
    return {site.name: surroundings_of(site, folder, named.get(site.name)) for site in facility.sites}
