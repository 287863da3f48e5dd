"""Energy: what has a site drawn, what did that cost, and who used it?

Counted in whole spans between changes. What depends on the hour (overhead, tariff, carbon) is applied when
the hour is over, to the hour's energy: nothing wakes up for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass

from wattline.facility import Site
from wattline.physics import carbon_kg, energy_usd, facility_kwh
from wattline.twin.truth.ports import HOUR_SECONDS, Surroundings, next_hour_at
from wattline.units import JOULES_PER_KWH


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteEnergy:
    """One site's account so far."""

    it_joules: float
    compute_joules: float  # what reached chips: without fans and without the losses of nodes' supplies
    facility_joules: float
    usd: float
    kg_co2e: float
    job_joules: float
    idle_joules: float  # drawn by what no job held
    peak_watts: float  # IT

    @property
    def residual(self) -> float:
        """What the balance misses, relative: every joule belongs to a job or to nobody."""
        return abs(self.it_joules - self.job_joules - self.idle_joules) / max(1.0, self.it_joules)

    @property
    def pue(self) -> float:
        return self.facility_joules / self.it_joules if self.it_joules else 1.0

    @property
    def tue(self) -> float:
        return self.facility_joules / self.compute_joules if self.compute_joules else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyTally:
    """What a run has cost and where it went over."""

    sites: Mapping[str, SiteEnergy]
    cap_violation_seconds: Mapping[str, float]  # by supply or rack, beyond what its breaker tolerates
    power_throttle_gpu_seconds: float
    heat_throttle_gpu_seconds: float
    shutdowns: int  # nodes that went off because of heat
    trips: int


@dataclass(frozen=True, slots=True)
class _Bill:
    facility_joules: float = 0.0
    usd: float = 0.0
    kg_co2e: float = 0.0


class SiteEnergyMeter:
    """Watts now and joules so far, of one site."""

    __slots__ = (
        "_bill",
        "_hour_ends_at",
        "_hour_joules",
        "_hour_seconds",
        "_site",
        "_surroundings",
        "at",
        "compute_joules",
        "compute_watts",
        "ended_job_joules",
        "idle_joules",
        "idle_watts",
        "it_joules",
        "peak_watts",
        "watts",
    )

    def __init__(self, site: Site, surroundings: Surroundings | None, at: float) -> None:
        self._site, self._surroundings = site, surroundings
        self.at = at
        self.watts = self.idle_watts = self.compute_watts = self.peak_watts = 0.0
        self.it_joules = self.idle_joules = self.compute_joules = self.ended_job_joules = 0.0
        self._bill = _Bill()
        self._hour_joules = self._hour_seconds = 0.0
        self._hour_ends_at = math.inf if surroundings is None else next_hour_at(at)

    def move(self, at: float) -> None:
        """Count up to now; a time that has been counted changes nothing."""
        while at >= self._hour_ends_at:
            self._count(self._hour_ends_at)
            self._bill = self._charged()
            self._hour_joules = self._hour_seconds = 0.0
            self._hour_ends_at += HOUR_SECONDS
        seconds = at - self.at
        if seconds > 0.0:  # as `_count`, in one go
            watts = self.watts
            joules = watts * seconds
            self.it_joules += joules
            self._hour_joules += joules
            self._hour_seconds += seconds
            self.idle_joules += self.idle_watts * seconds
            self.compute_joules += self.compute_watts * seconds
            if watts > self.peak_watts:
                self.peak_watts = watts
            self.at = at

    def tell(self, job_joules: float) -> SiteEnergy:
        """The account up to the time last moved to; `job_joules` is what running jobs have used so far."""
        bill = self._charged()
        return SiteEnergy(
            it_joules=self.it_joules,
            compute_joules=self.compute_joules,
            facility_joules=bill.facility_joules,
            usd=bill.usd,
            kg_co2e=bill.kg_co2e,
            job_joules=self.ended_job_joules + job_joules,
            idle_joules=self.idle_joules,
            peak_watts=self.peak_watts,
        )

    def spent_by(self, at: float) -> tuple[float, float]:
        """Dollars and kilograms by then, if nothing changes until then; the meter stays where it is."""
        ahead = copy(self)
        ahead.move(at)
        told = ahead.tell(0.0)
        return told.usd, told.kg_co2e

    def _count(self, at: float) -> None:
        seconds = at - self.at
        joules = self.watts * seconds
        self.it_joules += joules
        self._hour_joules += joules
        self._hour_seconds += seconds
        self.idle_joules += self.idle_watts * seconds
        self.compute_joules += self.compute_watts * seconds
        if self.watts > self.peak_watts:  # what lasted no time at all is not a peak
            self.peak_watts = self.watts
        self.at = at

    def _charged(self) -> _Bill:
        """The bill with the hour so far on it, at the hour's mean draw."""
        bill = self._bill
        if self._hour_seconds == 0.0:
            return bill
        around = self._surroundings
        if around is None:
            pue, usd, grams = self._site.pue, self._site.usd_per_kwh, self._site.grams_co2_per_kwh
        else:
            hour_at = self._hour_ends_at - HOUR_SECONDS
            pue = around.overhead(hour_at, self._hour_joules / self._hour_seconds)
            usd, grams = around.usd_per_kwh(hour_at), around.grams_co2_per_kwh(hour_at)
        kwh = facility_kwh(self._hour_joules, pue)
        return _Bill(
            bill.facility_joules + kwh * JOULES_PER_KWH,
            bill.usd + energy_usd(kwh, usd),
            bill.kg_co2e + carbon_kg(kwh, grams),
        )
