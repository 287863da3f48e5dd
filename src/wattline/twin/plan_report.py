"""What does a plan come to? The figures of its options, as programs read them.

Dollars are what an option changes: energy by the hour's tariff, and the option's own cost spread evenly over
its life. What stands already is paid for either way. What a GPU is charged by the hour is a price to whoever
uses it, and would count an option's capital a second time; so neither is in here.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from wattline.twin.comparison import stand_against


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """One figure with an option, against the same seeds without it."""

    base: float | None
    option: float | None
    difference: float | None
    low: float | None  # the 95 % confidence interval of the difference; null with one seed
    high: float | None
    is_clear: bool | None  # does the interval exclude zero?

    @property
    def gains(self) -> bool:
        return bool(self.is_clear) and self.difference is not None and self.difference > 0

    @property
    def loses(self) -> bool:
        return bool(self.is_clear) and self.difference is not None and self.difference < 0


class OptionReport(msgspec.Struct, frozen=True, kw_only=True):
    """One option. What is null is in `not_estimated`, with why after a colon."""

    name: str
    changes: tuple[str, ...]
    gpus: int
    usd_per_year: float | None  # its own cost; null where none was given
    option_usd: float | None  # that, over the horizon
    figures: dict[str, Weighed]
    gained_gpu_hours_per_usd: float | None  # useful GPU-hours gained for each dollar more
    gained_gpu_hours_per_kwh: float | None
    says: str
    not_estimated: tuple[str, ...]


class PlanReport(msgspec.Struct, frozen=True, kw_only=True):
    """A facility as it is and with each option, for the same jobs, seeds and time."""

    plan: str
    trace: str
    facility: str
    policy: str
    truth: str
    arrival_scale: float
    begins_at: str
    horizon_hours: float
    seeds: tuple[int, ...]
    gpus: int
    base: dict[str, float | None]
    options: tuple[OptionReport, ...]
    recommendation: str
    emulated: bool = True
    not_estimated: tuple[str, ...] = ()


def weigh_figure(base: Sequence[float | None], values: Sequence[float | None]) -> Weighed:
    """Seed by seed."""
    standing = stand_against(base, "", values)
    return Weighed(
        base=mean_of(base),
        option=standing.mean,
        difference=standing.difference,
        low=standing.low,
        high=standing.high,
        is_clear=standing.is_clear,
    )


def mean_of(values: Sequence[float | None]) -> float | None:
    """None where any is not known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
