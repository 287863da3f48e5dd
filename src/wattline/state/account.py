"""What a project has used this week and what it was promised: quotas and budgets are judged on both."""

from __future__ import annotations

import msgspec

from wattline.state.action import Place
from wattline.state.claim import peak_watts_at
from wattline.state.ending import Usage
from wattline.state.plant import Plant
from wattline.state.request import JobRequest
from wattline.state.share import Share
from wattline.units import SECONDS_PER_HOUR

WEEK_SECONDS = 7 * 86400.0
_FIRST_MONDAY = 4 * 86400.0  # 1970-01-05 00:00 UTC: weeks begin on Mondays
_MICRO = 1_000_000


def week_of(at: float) -> int:
    return int((at - _FIRST_MONDAY) // WEEK_SECONDS)


def week_ends_at(at: float) -> float:
    return _FIRST_MONDAY + (week_of(at) + 1) * WEEK_SECONDS


class Promised(msgspec.Struct, frozen=True):
    """The sum of what jobs were promised, in whole millionths: it comes back to zero when all have ended."""

    gpu_hours: int = 0
    usd: int = 0
    kwh: int = 0
    kg_co2e: int = 0

    def plus(self, promise: Usage, sign: int = 1) -> Promised:
        return Promised(
            self.gpu_hours + sign * round(_MICRO * promise.gpu_hours),
            self.usd + sign * round(_MICRO * promise.usd),
            self.kwh + sign * round(_MICRO * promise.kwh),
            self.kg_co2e + sign * round(_MICRO * promise.kg_co2e),
        )

    def usage(self) -> Usage:
        return Usage(self.gpu_hours / _MICRO, self.usd / _MICRO, self.kwh / _MICRO, self.kg_co2e / _MICRO)


class Account(msgspec.Struct, frozen=True):
    """One project's week."""

    week: int = 0
    used: Usage = Usage()
    promised: Promised = Promised()
    share: Share = Share()

    def at_week(self, week: int) -> Account:
        """The same account in that week: what was used in an earlier one no longer counts."""
        return self if week <= self.week else Account(week, Usage(), self.promised, self.share)

    @property
    def committed(self) -> Usage:
        return self.committed_besides(Usage())

    def committed_besides(self, promise: Usage) -> Usage:
        """What the week has seen of all but one job's promise: a job that moves takes its own along."""
        return self.used.plus(self.promised.plus(promise, -1).usage())


def promise_of(
    request: JobRequest, place: Place, plant: Plant, power_fraction: float, duration_seconds: float | None
) -> Usage:
    """What the job would use if it ran as long and as hard as it may; nothing where it set no end."""
    if duration_seconds is None:
        return NOTHING
    hours = duration_seconds / SECONDS_PER_HOUR
    peak_watts = peak_watts_at(request, place, plant, power_fraction)
    return usage_of(request.gpus * hours, peak_watts * hours / 1000.0, place, plant)


NOTHING = Usage()


def usage_of(gpu_hours: float, it_kwh: float, place: Place, plant: Plant) -> Usage:
    """Price GPU-hours and energy at a place, with what its cooling adds."""
    site = plant.sites[place.site]
    device = plant.spots[plant.node_number[place.nodes[0][0]]].node.device
    kwh = it_kwh * site.pue
    return Usage(
        gpu_hours=gpu_hours,
        usd=gpu_hours * (device.usd_per_hour if device else 0.0) + kwh * site.usd_per_kwh,
        kwh=kwh,
        kg_co2e=kwh * site.grams_co2_per_kwh / 1000.0,
    )
