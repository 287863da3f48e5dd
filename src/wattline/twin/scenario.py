"""A scenario played: what happens to a facility while work goes on, under one policy and beside another?

The document names things of a facility; here they are looked up, and what happens to a whole site becomes
faults of its feeds and links and a shift of its surroundings. Both policies then meet the same jobs, the same
truth and the same misfortune.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from wattline.facility import Facility
from wattline.spec import Condition, Fault, Scenario, find_facility, read_facility, read_scenario
from wattline.spec.reader import Written
from wattline.spec.shipped import shipped_facilities
from wattline.twin.replaying import Rules
from wattline.twin.report import Report
from wattline.twin.run import BEGINS_AT, Setting
from wattline.twin.scenario_names import check_names
from wattline.twin.spot_prices import Prices, read_spot_prices
from wattline.twin.surroundings import Change, Shifted, Surroundings, surroundings_by_site
from wattline.twin.synthetic import drive, make_jobs
from wattline.twin.timeline import Mark
from wattline.twin.traces import TraceJob, read_trace
from wattline.twin.workload import Arrival, arrivals_of


@dataclass(frozen=True, slots=True)
class Stage:
    """A scenario with all that it names, ready to be played."""

    scenario: Scenario
    facility: Facility
    faults: tuple[Fault, ...]
    surroundings: Mapping[str, Surroundings]
    spot_prices: Mapping[str, Prices]
    recorded: Sequence[TraceJob] | None  # of the trace, where it names one
    lines_refused: int
    begins_at: float = BEGINS_AT


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario came to, beside another policy where one was asked for."""

    scenario: str
    say: str
    report: Report
    against: Report | None
    useful_gpu_hours_ratio: float | None  # of the first to the second
    emulated: bool = True
    not_estimated: tuple[str, ...] = ()


def read_stage(name_or_path: str | Path, facility: str | None = None, begins_at: float = BEGINS_AT) -> Stage:
    """Read a scenario, its facility (or another) and its trace, and check every name."""
    written = read_scenario(name_or_path)
    scenario = written.document
    hall = read_facility(_facility_of(written) if facility is None else facility)
    check_names(written, hall)
    workload = scenario.workload
    recorded, lines_refused = None, 0
    if workload.trace is not None:
        trace = read_trace(
            written.path.parent / workload.trace,
            arrival_scale=workload.arrival_scale,
            skip_days=workload.skip_days,
        )
        recorded, lines_refused = trace.jobs, trace.refused_jobs
    faults = (*scenario.faults, *faults_of(scenario.conditions, hall))
    around = shifted(scenario.conditions, hall, begins_at)
    spot = {site: written.path.parent / path for site, path in scenario.spot.items()}
    prices = read_spot_prices(hall, spot)
    return Stage(scenario, hall, faults, around, prices, recorded, lines_refused, begins_at)


def setting_of(stage: Stage, rules: Rules, *, seed: int = 0, exact: bool = False) -> Setting:
    """One run of a scenario by these rules."""
    scenario = stage.scenario
    return Setting(
        name=scenario.scenario,
        facility=stage.facility,
        policy=rules.policy,
        arrivals=lambda: _arrivals(stage, seed),
        seed=seed,
        exact=exact,
        decide=rules.decide,
        decided_by=rules.name,
        arrival_scale=scenario.workload.arrival_scale,
        faults=stage.faults,
        marks=tuple(marks_of(scenario, stage.begins_at)),
        surroundings=stage.surroundings,
        spot_prices=stage.spot_prices,
        lines_refused=stage.lines_refused,
        until_seconds=scenario.lasts,
        begins_at=stage.begins_at,
    )


def set_side_by_side(stage: Stage, report: Report, against: Report | None) -> Played:
    """Both reports, and how many useful GPU-hours the first has for each of the second."""
    ratio = None
    if against is not None and against.useful_gpu_hours > 0.0:
        ratio = report.useful_gpu_hours / against.useful_gpu_hours
    return Played(
        scenario=stage.scenario.scenario,
        say=stage.scenario.say,
        report=report,
        against=against,
        useful_gpu_hours_ratio=ratio,
        not_estimated=("useful_gpu_hours_ratio",) if ratio is None else (),
    )


def marks_of(scenario: Scenario, begins_at: float) -> Iterator[Mark]:
    """What happens, by the names that the document gives."""
    happenings: list[Fault | Condition] = [*scenario.faults, *scenario.conditions]
    for each in happenings:
        first = begins_at + (each.at.after or 0.0)
        yield Mark(each.name, first, math.inf if each.lasts is None else first + each.lasts)


def faults_of(conditions: Sequence[Condition], facility: Facility) -> Iterator[Fault]:
    """What conditions do to feeds and links: a limit is left of each feed, a lost site has neither."""
    for condition in conditions:
        left = 0.0 if condition.lost else condition.limit
        if left is None:
            continue
        for site in facility.sites:
            if condition.site not in (None, site.name):
                continue
            for supply in site.supplies:
                if supply.parent is None:
                    yield _fault(condition, supply=supply.name, rating=left)
        for link in facility.links if condition.lost else ():
            if condition.site in link.between:
                yield _fault(condition, link=link.name, bandwidth=0.0)


def shifted(conditions: Sequence[Condition], facility: Facility, begins_at: float) -> dict[str, Surroundings]:
    """The surroundings of every site, as conditions leave them."""
    around = surroundings_by_site(facility)
    for condition in conditions:
        start = begins_at + (condition.at.after or 0.0)
        for site in around:
            if condition.site in (None, site):
                around[site] = Shifted(
                    around[site],
                    start=start,
                    end=math.inf if condition.lasts is None else start + condition.lasts,
                    dry_bulb_kelvin=condition.outside or 0.0,
                    price=_change(condition.price_factor),
                    carbon=_change(condition.carbon_factor),
                )
    return around


def _arrivals(stage: Stage, seed: int) -> Iterator[Arrival]:
    scenario = stage.scenario
    jobs = stage.recorded
    if jobs is None:
        jobs = make_jobs(scenario.workload, stage.facility.gpus, scenario.lasts, seed)
    return drive(arrivals_of(jobs, stage.begins_at, seed), scenario.workload, seed)


def _facility_of(written: Written[Scenario]) -> Path:
    """One that ships, by its name; any other is a file beside the scenario's own."""
    name = written.document.facility
    return find_facility(name) if name in shipped_facilities() else written.path.parent / name


def _change(factor: float | None) -> Change:
    return Change() if factor is None else Change(factor=factor)


def _fault(condition: Condition, **effect: str | float) -> Fault:
    """Of values that were read already: a duration has lost its unit, so it cannot be read again."""
    return Fault.model_construct(
        name=condition.name,
        at=condition.at,
        lasts=condition.lasts,
        **effect,  # type: ignore[arg-type]
    )
