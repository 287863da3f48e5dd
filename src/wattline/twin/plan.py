"""Plan: what would more racks, warmer water or another uplink buy? The twin runs with each, for each seed.

Everything is run for the same time. Given enough of it every job would be done in the end, and more machines
would only be done sooner; within a horizon they get more done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wattline.errors import UsageError
from wattline.facility import Facility
from wattline.spec.plan import PlanOption
from wattline.state import JobRequest
from wattline.twin.changes import apply_changes, describe_change, say_crowding, sites_recooled
from wattline.twin.plan_report import PlanReport
from wattline.twin.plan_weighing import Tried, weigh_options
from wattline.twin.report import Report
from wattline.twin.run import Glimpse, Setting, run
from wattline.twin.surroundings import Surroundings, surroundings_by_site
from wattline.twin.traces import Trace
from wattline.twin.workload import Arrival

AS_IT_IS = "as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A facility with an option's changes made."""

    name: str
    changes: tuple[str, ...]
    facility: Facility
    surroundings: Mapping[str, Surroundings]
    usd_per_year: float | None  # None where no cost was given
    stale_pue_sites: tuple[str, ...]
    crowding: str  # what its racks take from others before they work


@dataclass(frozen=True, slots=True)
class Progress:
    """Which run has come how far; over once it has its report."""

    choice: str
    seed: int
    news: Glimpse | Report


def choose(facility: Facility, option: PlanOption) -> Choice:
    """Make an option's changes; raises DocumentError where they cannot be made."""
    changed = apply_changes(facility, option.changes)
    weathered = {site.name for site in facility.sites if site.weather_series or site.weather_normals}
    return Choice(
        name=option.name,
        changes=tuple(describe_change(change) for change in option.changes),
        facility=changed,
        surroundings=surroundings_by_site(changed),
        usd_per_year=None if option.cost is None else option.cost.usd_per_year,
        stale_pue_sites=tuple(site for site in sites_recooled(facility, changed) if site not in weathered),
        crowding=say_crowding(facility, option.changes),
    )


def choose_horizon(trace: Trace, asked_seconds: float | None) -> float:
    """As long as jobs arrive, unless somebody says otherwise."""
    if asked_seconds is not None:
        return asked_seconds
    if trace.jobs and (arrives_seconds := trace.jobs[-1].arrives_seconds) > 0:
        return arrives_seconds
    raise UsageError(
        f"{trace.name}: all jobs arrive at once, so nothing says how long to look",
        hint="say so: --horizon 2d, or horizon: 2d in the plan",
    )


def run_plan(
    name: str,
    setting_of: Callable[[int], Setting],
    choices: Sequence[Choice],
    *,
    seeds: Sequence[int],
    horizon_seconds: float,
    tell: Callable[[Progress], None],
) -> PlanReport:
    """The setting of each seed as it is, then with each choice's facility instead."""
    base: list[Report] = []
    tried: list[list[Report]] = [[] for _ in choices]
    for seed in seeds:
        setting = _until(setting_of(seed), horizon_seconds)
        base.append(_run(setting, AS_IT_IS, tell))
        for choice, reports in zip(choices, tried, strict=True):
            other = replace(setting, facility=choice.facility, surroundings=choice.surroundings)
            reports.append(_run(other, choice.name, tell))
    options = [
        Tried(
            name=choice.name,
            changes=choice.changes,
            gpus=choice.facility.gpus,
            usd_per_year=choice.usd_per_year,
            stale_pue_sites=choice.stale_pue_sites,
            crowding=choice.crowding,
            reports=reports,
        )
        for choice, reports in zip(choices, tried, strict=True)
    ]
    return weigh_options(name, base, options, horizon_seconds)


def _run(setting: Setting, choice: str, tell: Callable[[Progress], None]) -> Report:
    report = run(setting, tell=lambda glimpse: tell(Progress(choice, setting.seed, glimpse))).report
    tell(Progress(choice, setting.seed, report))
    return report


def _until(setting: Setting, horizon_seconds: float) -> Setting:
    ends_at = setting.begins_at + horizon_seconds
    return replace(
        setting, until_seconds=horizon_seconds, arrivals=lambda: _with_a_last(setting.arrivals(), ends_at)
    )


def _with_a_last(arrivals: Iterator[Arrival], ends_at: float) -> Iterator[Arrival]:
    """Somebody who comes after the horizon: while one is awaited a run with nothing left to do goes on, and
    machines that stand idle draw."""
    yield from arrivals
    request = JobRequest(job="after/train", run="after")
    yield Arrival(at=ends_at + 1.0, request=request, work_seconds=1.0, utilisation=0.0)
