"""Spot prices: what does a GPU-hour of a cloud cost at this hour?

A file says so, or lots do: the logarithm of the price strays from its mean hour by hour and is drawn back to
it, never above what the same machine costs on demand. Everything is constant within an hour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Protocol

from wattline.facility import Cloud, Facility
from wattline.twin.surroundings.series import Constant
from wattline.twin.surroundings.tables import read_gpu_hour_price
from wattline.units import SECONDS_PER_HOUR

_KEPT = 0.9  # of how far a price strayed, what is left of it an hour later; assumed


class Prices(Protocol):
    def at(self, at: float) -> float: ...

    def integral(self, start: float, end: float) -> float:
        """Price times hours between two times."""


class StrayingPrice:
    """A price by lots: the same seed and site give the same hours, whoever asks for which of them first."""

    def __init__(self, cloud: Cloud, name: str, begins_at: float) -> None:
        self._draw = Random(name)  # noqa: S311 - runs must repeat
        self._mean, self._width = cloud.usd_per_gpu_hour, cloud.varies_fraction
        self._most = math.inf if cloud.most_usd_per_gpu_hour is None else cloud.most_usd_per_gpu_hour
        self._first_hour = math.floor(begins_at / SECONDS_PER_HOUR)
        self._strayed = self._width * self._draw.gauss(0.0, 1.0)
        self._hours: list[float] = []

    def at(self, at: float) -> float:
        hour = max(0, math.floor(at / SECONDS_PER_HOUR) - self._first_hour)
        while len(self._hours) <= hour:
            # Less half its variance, so that the mean is what the facility says.
            price = self._mean * math.exp(self._strayed - self._width**2 / 2.0)
            self._hours.append(min(self._most, price))
            fresh = self._width * math.sqrt(1.0 - _KEPT**2)
            self._strayed = _KEPT * self._strayed + fresh * self._draw.gauss(0.0, 1.0)
        return self._hours[hour]

    def integral(self, start: float, end: float) -> float:
        total, at = 0.0, start
        while at < end:
            until = min(end, (math.floor(at / SECONDS_PER_HOUR) + 1) * SECONDS_PER_HOUR)
            total += self.at(at) * (until - at) / SECONDS_PER_HOUR
            at = until
        return total


def read_spot_prices(facility: Facility, instead: Mapping[str, Path] | None = None) -> dict[str, Prices]:
    """Those of regions that name a file beside the facility's own, or for which one is named instead."""
    folder, named = Path(facility.source).parent, instead or {}
    found: dict[str, Prices] = {}
    for site in facility.sites:
        if site.cloud is None:
            continue
        path = named.get(site.name) or (folder / site.cloud.price_series if site.cloud.price_series else None)
        if path is not None:
            found[site.name] = read_gpu_hour_price(path)[0]
    return found


def prices_of(site: str, cloud: Cloud, seed: int, begins_at: float, read: Mapping[str, Prices]) -> Prices:
    if site in read:
        return read[site]
    if cloud.varies_fraction:
        return StrayingPrice(cloud, f"spot/{seed}/{site}", begins_at)
    return Constant(cloud.usd_per_gpu_hour)
