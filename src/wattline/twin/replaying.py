"""Replaying: which files and names make up the run that a person asks for?

A question holds names only, so that it can be asked again in another process. What it names is read once; any
number of settings, by policy and by seed, are then made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wattline.control import Decide
from wattline.errors import UnavailableError
from wattline.facility import Facility
from wattline.policy import decide as decide_by_policy
from wattline.spec import Policy, find_policy, read_facility, read_policy, shipped_policies
from wattline.spec.nearest import nearest
from wattline.spec.reader import read_document
from wattline.spec.slo import Slo, SloDocument
from wattline.twin.baselines import BASELINES
from wattline.twin.pollux import Profiles
from wattline.twin.run import BEGINS_AT, Setting
from wattline.twin.spot_prices import Prices, read_spot_prices
from wattline.twin.surroundings import Surroundings, surroundings_by_site
from wattline.twin.traces import Trace, read_trace
from wattline.twin.traces.pollux import PROFILES
from wattline.twin.workload import arrivals_of

DEFAULT_POLICY = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What would have become of these jobs there, under these rules?"""

    trace: Path
    facility: str  # a file, or one that ships
    policy: str = DEFAULT_POLICY  # a file, one that ships, or a baseline
    arrival_scale: float = 1.0
    skip_days: float = 0.0
    most_jobs: int | None = None
    seed: int = 0
    exact: bool = False
    until_seconds: float | None = None
    begins_at: float = BEGINS_AT  # the first moment of the twin: of that season are weather and prices
    slo: Path | None = None  # a file of SLOs


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a question names, as read."""

    question: Question
    trace: Trace
    facility: Facility
    surroundings: Mapping[str, Surroundings]
    spot_prices: Mapping[str, Prices]
    rates: Profiles | None  # where it was measured how fast jobs go on what they are given
    slos: tuple[Slo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Who decides, by which document."""

    name: str
    policy: Policy
    decide: Decide


def read_material(question: Question) -> Material:
    """Read trace, facility and the series that it names; raises what their readers raise."""
    slos = read_document(question.slo, SloDocument).slos if question.slo is not None else ()
    facility = read_facility(question.facility)
    surroundings = surroundings_by_site(facility)
    trace = read_trace(
        question.trace,
        arrival_scale=question.arrival_scale,
        skip_days=question.skip_days,
        most_jobs=question.most_jobs,
    )
    # A Pollux trace cannot be read without its profiles: they are there.
    rates = Profiles(question.trace.parent / PROFILES) if trace.kind == "pollux" else None
    return Material(
        question=question,
        trace=trace,
        facility=facility,
        surroundings=surroundings,
        spot_prices=read_spot_prices(facility),
        rates=rates,
        slos=slos,
    )


def read_rules(name_or_path: str) -> Rules:
    """A policy document, or a baseline: that one goes by the default document's thresholds."""
    if name_or_path in BASELINES:
        return Rules(name=name_or_path, policy=read_policy(DEFAULT_POLICY), decide=BASELINES[name_or_path])
    try:
        find_policy(name_or_path)
    except UnavailableError as error:
        known = [*shipped_policies(), *BASELINES]
        close = nearest(name_or_path, known)
        hint = f"did you mean {close!r}?" if close else f"name a file, or one of {', '.join(known)}"
        raise UnavailableError(error.message, hint=hint) from error
    policy = read_policy(name_or_path)
    return Rules(name=policy.policy, policy=policy, decide=decide_by_policy)


def setting_of(material: Material, rules: Rules, seed: int | None = None) -> Setting:
    """One run of this; with the question's own seed unless another is named."""
    question, trace = material.question, material.trace
    chosen = question.seed if seed is None else seed
    return Setting(
        name=trace.name,
        facility=material.facility,
        policy=rules.policy,
        arrivals=lambda: arrivals_of(trace.jobs, question.begins_at, chosen),
        seed=chosen,
        exact=question.exact,
        decide=rules.decide,
        decided_by=rules.name,
        arrival_scale=question.arrival_scale,
        surroundings=material.surroundings,
        spot_prices=material.spot_prices,
        rates=material.rates,
        lines_refused=trace.refused_jobs,
        until_seconds=question.until_seconds,
        begins_at=question.begins_at,
        slos=material.slos,
    )
