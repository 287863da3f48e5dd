"""Shifted: the same surroundings, but for a while hotter, dearer or dirtier."""

from __future__ import annotations

from dataclasses import dataclass

from wattline.facility import Loop
from wattline.physics.weather import Weather, predict_warmed
from wattline.twin.surroundings.site import Integral, Surroundings


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a price or an intensity: multiplied, or set."""

    factor: float = 1.0
    to: float | None = None

    def of(self, value: float, hours: float = 1.0) -> float:
        """The value after it; of a value times hours, so many hours of it."""
        return self.factor * value if self.to is None else self.to * hours


_AS_IT_IS = Change()


class Shifted(Surroundings):
    """`base`, changed from `start` until `end`; they nest: a heatwave, and a grid event within it."""

    def __init__(
        self,
        base: Surroundings,
        *,
        start: float,
        end: float,
        dry_bulb_kelvin: float = 0.0,
        price: Change = _AS_IT_IS,
        carbon: Change = _AS_IT_IS,
    ) -> None:
        super().__init__(base.site, base.sources)
        self._base = base
        self._start, self._end = start, end
        self._dry_bulb_kelvin = dry_bulb_kelvin
        self._price, self._carbon = price, carbon

    def weather(self, at: float) -> Weather | None:
        weather = self._base.weather(at)
        if weather is None or not self._holds(at):
            return weather
        return predict_warmed(weather, self._dry_bulb_kelvin)

    def supply_celsius(self, loop: Loop, at: float) -> float:
        """Where the weather is not known, the plant counts as one at its limit, the worst it could be."""
        if self.weather(at) is not None:
            return super().supply_celsius(loop, at)
        celsius = self._base.supply_celsius(loop, at)
        return celsius + max(0.0, self._dry_bulb_kelvin) if self._holds(at) else celsius

    def usd_per_kwh(self, at: float) -> float:
        usd = self._base.usd_per_kwh(at)
        return self._price.of(usd) if self._holds(at) else usd

    def grams_co2_per_kwh(self, at: float) -> float:
        grams = self._base.grams_co2_per_kwh(at)
        return self._carbon.of(grams) if self._holds(at) else grams

    def next_change_at(self, at: float) -> float:
        edges = [edge for edge in (self._start, self._end) if edge > at]
        return min([self._base.next_change_at(at), *edges])

    def integrate(self, start: float, end: float) -> Integral:
        whole = self._base.integrate(start, end)
        first, last = max(start, self._start), min(end, self._end)
        if first >= last:
            return whole
        within = self._base.integrate(first, last)
        usd_hours = self._price.of(within.usd_hours, within.hours) - within.usd_hours
        grams_hours = self._carbon.of(within.grams_hours, within.hours) - within.grams_hours
        return Integral(whole.hours, whole.usd_hours + usd_hours, whole.grams_hours + grams_hours)

    def _holds(self, at: float) -> bool:
        return self._start <= at < self._end
