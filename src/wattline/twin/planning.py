"""Planning: which files, names and flags make up the plan that a person asks for?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wattline.errors import UsageError
from wattline.facility import Facility
from wattline.spec import Plan, PlanOption, read_facility, read_plan, shipped_facilities, shipped_policies
from wattline.spec.flaws import Flaw, FlawedError
from wattline.spec.nearest import listed
from wattline.spec.reader import Written
from wattline.twin.baselines import BASELINES
from wattline.twin.plan import Choice, choose, choose_horizon
from wattline.twin.replaying import (
    DEFAULT_POLICY,
    Material,
    Question,
    Rules,
    read_material,
    read_rules,
    setting_of,
)
from wattline.twin.run import BEGINS_AT, Setting
from wattline.twin.surroundings import surroundings_by_site
from wattline.twin.synthetic import drive, make_jobs
from wattline.twin.workload import arrivals_of

DEFAULT_FACILITY = "three-sites"
DEFAULT_SEEDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was named on a command line; None or nothing: what the plan says, or what is usual."""

    plan: str | None = None  # a file, or one that ships
    options: Sequence[tuple[str, PlanOption]] = ()  # beside the plan's, each with the flag it came from
    facility: str | None = None
    policy: str | None = None
    trace: Path | None = None
    arrival_scale: float | None = None
    skip_days: float | None = None
    most_jobs: int | None = None
    horizon_seconds: float | None = None
    begins_at: float | None = None
    seeds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """All that a plan needs, as read."""

    name: str
    choices: tuple[Choice, ...]
    setting_of: Callable[[int], Setting]  # by seed, of the facility as it is
    seeds: tuple[int, ...]
    horizon_seconds: float
    material: Material | None  # of the trace, where there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Jobs:
    """Who comes to the facility as it is, and for how long that is looked at."""

    facility: Facility
    setting_of: Callable[[int], Setting]
    horizon_seconds: float
    material: Material | None = None


def read_ground(asked: Asked) -> Ground:
    """Read the plan and what it names; raises what their readers raise."""
    written = None if asked.plan is None else read_plan(asked.plan)
    if written is None and not asked.options:
        raise UsageError(
            "there is nothing to plan with", hint="name a plan document, or ask such as --uplink 'LINK*2'"
        )
    plan = written.document if written else None
    jobs = _recorded(asked, written) or _made_up(asked, written)
    flagged = [_of_flag(flag, option, jobs.facility) for flag, option in asked.options]
    return Ground(
        name=plan.plan if plan else "flags",
        choices=(*_of_plan(written, jobs.facility), *flagged),
        setting_of=jobs.setting_of,
        seeds=tuple(range(asked.seeds or (plan.seeds if plan else DEFAULT_SEEDS))),
        horizon_seconds=jobs.horizon_seconds,
        material=jobs.material,
    )


def _facility(asked: Asked, written: Written[Plan] | None) -> str:
    own = written and _named(written, written.document.facility, shipped_facilities())
    return asked.facility or own or DEFAULT_FACILITY


def _rules(asked: Asked, written: Written[Plan] | None) -> Rules:
    own = written and _named(written, written.document.policy, (*shipped_policies(), *BASELINES))
    return read_rules(asked.policy or own or DEFAULT_POLICY)


def _named(written: Written[Plan], name: str | None, shipped: Collection[str]) -> str | None:
    """One that ships, by its name; any other is a file beside the plan's own."""
    return name if name is None or name in shipped else str(written.path.parent / name)


def _begins_at(asked: Asked, written: Written[Plan] | None) -> float:
    own = written.document.begins if written else None
    return next((at for at in (asked.begins_at, own) if at is not None), BEGINS_AT)


def _weathered(facility: Facility, written: Written[Plan] | None) -> Facility:
    """With the weather that the plan has for its sites, instead of theirs."""
    outside = written.document.weather if written else {}
    known = [site.name for site in facility.sites]
    if written is not None and (unknown := [name for name in outside if name not in known]):
        message = f"no such site in {facility.name}"
        flaws = [
            Flaw(at=("weather", name), message=message, value=repr(name), allowed=listed(known))
            for name in unknown
        ]
        raise written.wrong(flaws)
    sites = (
        replace(site, weather_series="", weather_normals=outside[site.name].build())
        if site.name in outside
        else site
        for site in facility.sites
    )
    return replace(facility, sites=tuple(sites))


def _horizon(asked: Asked, written: Written[Plan] | None) -> float | None:
    return asked.horizon_seconds or (written.document.horizon if written else None)


def _recorded(asked: Asked, written: Written[Plan] | None) -> _Jobs | None:
    """The jobs of a trace: the one that was named, else the plan's own."""
    workload = written.document.workload if written and asked.trace is None else None
    trace = asked.trace
    if written is not None and workload is not None and workload.trace is not None:
        trace = written.path.parent / workload.trace
    if trace is None:
        return None
    scale, skip = (workload.arrival_scale, workload.skip_days) if workload else (1.0, 0.0)
    begins_at = _begins_at(asked, written)
    material = read_material(
        Question(
            trace=trace,
            facility=_facility(asked, written),
            arrival_scale=scale if asked.arrival_scale is None else asked.arrival_scale,
            skip_days=skip if asked.skip_days is None else asked.skip_days,
            most_jobs=asked.most_jobs,
            begins_at=begins_at,
        )
    )
    facility = _weathered(material.facility, written)
    material = replace(material, facility=facility, surroundings=surroundings_by_site(facility))
    rules = _rules(asked, written)

    def by_seed(seed: int) -> Setting:
        setting = setting_of(material, rules, seed)
        if workload is None:
            return setting
        return replace(
            setting,
            arrivals=lambda: drive(arrivals_of(material.trace.jobs, begins_at, seed), workload, seed),
        )

    return _Jobs(
        facility=material.facility,
        setting_of=by_seed,
        horizon_seconds=choose_horizon(material.trace, _horizon(asked, written)),
        material=material,
    )


def _made_up(asked: Asked, written: Written[Plan] | None) -> _Jobs:
    """Made for the facility as it is: options meet the same jobs, however many GPUs they have."""
    workload = written.document.workload if written else None
    horizon_seconds = _horizon(asked, written)
    if written is None or workload is None or horizon_seconds is None:
        raise UsageError("there are no jobs to plan with", hint="name them: --trace philly.csv.gz")
    for name in ("arrival_scale", "skip_days", "most_jobs"):
        if getattr(asked, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{flag} is about a trace, and this plan makes its jobs up", hint="name a --trace"
            )
    facility = _weathered(read_facility(_facility(asked, written)), written)
    rules, surroundings = _rules(asked, written), surroundings_by_site(facility)
    begins_at = _begins_at(asked, written)

    def by_seed(seed: int) -> Setting:
        jobs = make_jobs(workload, facility.gpus, horizon_seconds, seed)
        return Setting(
            name=f"jobs of {written.document.plan}",
            facility=facility,
            policy=rules.policy,
            arrivals=lambda: drive(arrivals_of(jobs, begins_at, seed), workload, seed),
            begins_at=begins_at,
            seed=seed,
            decide=rules.decide,
            decided_by=rules.name,
            surroundings=surroundings,
        )

    return _Jobs(facility=facility, setting_of=by_seed, horizon_seconds=horizon_seconds)


def _of_plan(written: Written[Plan] | None, facility: Facility) -> list[Choice]:
    if written is None:
        return []
    choices = []
    for number, option in enumerate(written.document.options):
        try:
            choices.append(choose(facility, option))
        except FlawedError as error:
            at = ("options", number)
            raise written.wrong([replace(flaw, at=(*at, *flaw.at)) for flaw in error.flaws]) from None
    return choices


def _of_flag(flag: str, option: PlanOption, facility: Facility) -> Choice:
    try:
        return choose(facility, option)
    except FlawedError as error:
        first = error.flaws[0]
        said = f"{first.message}; did you mean {first.nearest!r}?" if first.nearest else first.message
        hint = f"known here: {first.allowed}" if first.allowed else None
        if first.at == ("changes",) and option.changes[0].copies and not option.changes[0].grow:
            hint = "--grow builds out what they hang on"
        raise UsageError(f"{flag} {option.name!r}: {said}", hint=hint) from None
