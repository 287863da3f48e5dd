"""What does each option of a plan buy, and is that sure? Runs go in, a plan's report comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from wattline.twin.left_out import count_never_begun
from wattline.twin.plan_advice import Columns, recommend, say_option
from wattline.twin.plan_report import OptionReport, PlanReport, Weighed, mean_of, weigh_figure
from wattline.twin.report import Report
from wattline.units import SECONDS_PER_HOUR

HOURS_PER_YEAR = 365.25 * 24


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """An option and its runs, one for each seed."""

    name: str
    changes: tuple[str, ...]
    gpus: int
    usd_per_year: float | None
    stale_pue_sites: tuple[str, ...]  # cooled otherwise, with nothing known about their weather
    reports: Sequence[Report]
    crowding: str = ""  # what its racks take from others before they work


def weigh_options(
    plan: str, base: Sequence[Report], tried: Sequence[Tried], horizon_seconds: float
) -> PlanReport:
    """Each option against the facility as it is."""
    first = base[0]
    horizon_hours = horizon_seconds / SECONDS_PER_HOUR
    bases = _columns(base, 0.0)
    options, columns = [], []
    for one in tried:
        spent = (one.usd_per_year or 0.0) * horizon_hours / HOURS_PER_YEAR
        columns.append(_columns(one.reports, spent))
        options.append(_weigh(one, bases, columns[-1], spent, horizon_seconds))
    unknown = [
        f"base.{name}: some run does not know it" for name, told in bases.items() if mean_of(told) is None
    ]
    return PlanReport(
        plan=plan,
        trace=first.trace,
        facility=first.facility,
        policy=first.policy,
        truth=first.truth,
        arrival_scale=first.arrival_scale,
        begins_at=first.begins_at,
        horizon_hours=horizon_hours,
        seeds=tuple(report.seed for report in base),
        gpus=first.gpus,
        base={name: mean_of(told) for name, told in bases.items()},
        options=tuple(options),
        recommendation=recommend(options, bases, columns),
        not_estimated=(*unknown, *(["interval: one seed has none"] if len(base) == 1 else [])),
    )


_FIGURES: dict[str, Callable[[Report], float | None]] = {
    "useful_gpu_hours": lambda report: report.useful_gpu_hours,
    "energy_kwh": lambda report: report.energy_kwh,
    "energy_usd": lambda report: _sum([site.cost_usd for site in report.sites.values()]),
    "carbon_kg": lambda report: report.carbon_kg,
    "jobs_completed": lambda report: float(report.jobs.completed),
    "jobs_unfinished": lambda report: float(report.jobs.unfinished),
    "jobs_never_begun": lambda report: float(count_never_begun(report)),
    "wait_minutes_mean": lambda report: report.wait_minutes.mean,
    "wait_minutes_p95": lambda report: report.wait_minutes.p95,
    "peak_kw": lambda report: report.peak_kw,
    "pue": lambda report: report.pue,
    "throttle_gpu_seconds": lambda report: report.throttle_gpu_seconds,
    "cap_violation_seconds": lambda report: report.cap_violation_seconds,
}


def _columns(reports: Sequence[Report], option_usd: float) -> dict[str, list[float | None]]:
    columns = {name: [read(report) for report in reports] for name, read in _FIGURES.items()}
    columns["usd"] = [None if usd is None else usd + option_usd for usd in columns["energy_usd"]]
    for unit in ("usd", "kwh"):
        spent = columns["usd" if unit == "usd" else "energy_kwh"]
        pairs = zip(columns["useful_gpu_hours"], spent, strict=True)
        # For nothing, or for less than nothing where the grid pays, there is no such ratio.
        columns[f"useful_gpu_hours_per_{unit}"] = [
            hours / amount if hours is not None and amount is not None and amount > 0 else None
            for hours, amount in pairs
        ]
    return columns


def _weigh(
    tried: Tried, base: Columns, columns: Columns, option_usd: float, horizon_seconds: float
) -> OptionReport:
    figures = {name: weigh_figure(base[name], columns[name]) for name in columns}
    if tried.stale_pue_sites:
        figures["pue"] = Weighed(
            base=figures["pue"].base, option=None, difference=None, low=None, high=None, is_clear=None
        )
    per_usd, per_kwh = (_gained_per(figures, spent) for spent in ("usd", "energy_kwh"))
    told = len(tried.reports)
    return OptionReport(
        name=tried.name,
        changes=tried.changes,
        gpus=tried.gpus,
        usd_per_year=tried.usd_per_year,
        option_usd=None if tried.usd_per_year is None else option_usd,
        figures=figures,
        gained_gpu_hours_per_usd=per_usd,
        gained_gpu_hours_per_kwh=per_kwh,
        says=say_option(
            figures, per_usd, per_kwh, told, horizon_seconds, tried.stale_pue_sites, tried.crowding
        ),
        not_estimated=tuple(_unknowns(tried, figures, per_usd, per_kwh)),
    )


def _gained_per(figures: Mapping[str, Weighed], spent: str) -> float | None:
    """Of the means; only where both what is gained and what is spent for it are clear of zero."""
    gain, more = figures["useful_gpu_hours"], figures[spent]
    if not (gain.gains and more.gains) or gain.difference is None or more.difference is None:
        return None
    return gain.difference / more.difference


def _unknowns(
    tried: Tried, figures: Mapping[str, Weighed], per_usd: float | None, per_kwh: float | None
) -> list[str]:
    unknown = []
    if tried.usd_per_year is None:
        unknown.append("option_usd: no cost was given, so dollars are energy alone")
    if tried.stale_pue_sites:
        sites = ", ".join(tried.stale_pue_sites)
        unknown.append(f"pue: not re-estimated, as the weather of {sites} is not known")
    for unit, value in (("usd", per_usd), ("kwh", per_kwh)):
        if value is None:
            unknown.append(f"gained_gpu_hours_per_{unit}: no gain, or no more spent, that is clear of zero")
    missing = [name for name, each in figures.items() if each.option is None and name != "pue"]
    return unknown + [f"{name}: some run does not know it" for name in missing]


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
