"""What a project has used this week and what it was promised: quotas and budgets are judged on both."""

from __future__ import annotations

import msgspec

from wattline.state.action import Place
from wattline.state.event import Usage
from wattline.state.plant import Plant
from wattline.state.request import JobRequest
from wattline.units import SECONDS_PER_HOUR

WEEK_SECONDS = 7 * 86400.0
_FIRST_MONDAY = 4 * 86400.0  # 1970-01-05 00:00 UTC: weeks begin on Mondays


def week_of(at: float) -> int:
    return int((at - _FIRST_MONDAY) // WEEK_SECONDS)


def week_ends_at(at: float) -> float:
    return _FIRST_MONDAY + (week_of(at) + 1) * WEEK_SECONDS


class Account(msgspec.Struct, frozen=True):
    """One project's week."""

    week: int = 0
    used: Usage = Usage()
    promised: dict[str, Usage] = {}  # by job that holds a claim

    def at_week(self, week: int) -> Account:
        """The same account in that week: what was used in an earlier one no longer counts."""
        return self if week <= self.week else Account(week, Usage(), self.promised)

    @property
    def committed(self) -> Usage:
        return self.committed_besides(None)

    def committed_besides(self, job: str | None) -> Usage:
        """What the week has seen of all but one job's promise: a job that moves takes its own along."""
        total = self.used
        for holder, promise in self.promised.items():
            if holder != job:
                total = total.plus(promise)
        return total


def promise_of(
    request: JobRequest, place: Place, plant: Plant, peak_watts: float, duration_seconds: float | None
) -> Usage:
    """What the job would use if it ran as long and as hard as it may; nothing where it set no end."""
    hours = (duration_seconds or 0.0) / SECONDS_PER_HOUR
    return usage_of(request.gpus * hours, peak_watts * hours / 1000.0, place, plant)


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
