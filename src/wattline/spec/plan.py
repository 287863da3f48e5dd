"""`plan.yaml`: what might be built or turned, and what that would cost; the twin says what each would buy."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from wattline import units
from wattline.spec.document import Document
from wattline.spec.flaws import MOST_FLAWS, Flaw, FlawedError
from wattline.spec.quantities import Day, Name, Number, Seconds, Usd, Whole
from wattline.spec.scenario import Workload
from wattline.spec.site import NormalsDocument

GROWING = ("loop", "power")  # what copies of a rack may have built out with them
MOST_COPIES = 10_000
MOST_SEEDS = 100

# A set point that moves further than this is another plant, not another setting.
_WARMING = replace(
    units.TEMPERATURE_DIFFERENCE, name="temperature change", least=-50.0, most=50.0, example="2K"
)
Factor = Annotated[Number, Field(gt=0, le=1000)]
NameOrPath = Annotated[str, Field(min_length=1, max_length=1000)]
Subject = Annotated[str, Field(min_length=1, max_length=200)]
NotNegativeUsd = Annotated[Usd, Field(ge=0)]


class PlanChange(Document):
    """One thing that would be otherwise. Exactly one of rack, loop, supply or link names it."""

    rack: Subject | None = None
    loop: Subject | None = None
    supply: Subject | None = None
    link: Subject | None = None
    copies: Annotated[Whole, Field(ge=1, le=MOST_COPIES)] | None = None  # of a rack, with its nodes
    on_loop: Subject | None = None  # that the copies hang on; the rack's own unless said
    grow: tuple[Literal["loop", "power"], ...] = ()  # what is built out so that it carries the copies too
    cap_factor: Factor | None = None  # of a rack
    warmer_by: Annotated[float, BeforeValidator(_WARMING.parse)] | None = None  # a loop's supply
    capacity_factor: Factor | None = None  # of a loop
    rating_factor: Factor | None = None  # of a supply
    bandwidth_factor: Factor | None = None  # of a link

    @model_validator(mode="after")
    def _one_subject(self) -> PlanChange:
        allowed = {
            "rack": {"copies", "cap_factor"},
            "loop": {"warmer_by", "capacity_factor"},
            "supply": {"rating_factor"},
            "link": {"bandwidth_factor"},
        }
        subjects = [kind for kind in allowed if getattr(self, kind) is not None]
        if len(subjects) != 1:
            raise ValueError(f"a change names exactly one of {', '.join(allowed)}")
        effects = sorted(effect for effects in allowed.values() for effect in effects)
        given = {effect for effect in effects if getattr(self, effect) is not None}
        if len(given) != 1 or not given <= allowed[subjects[0]]:
            either = " or ".join(sorted(allowed[subjects[0]]))
            raise ValueError(f"a change of a {subjects[0]} says {either}, and nothing else")
        if self.copies is None and (self.on_loop is not None or self.grow):
            raise ValueError("on_loop and grow belong to copies of a rack")
        return self


class PlanCost(Document):
    """What an option costs: money spent once, over how long it serves, and money spent every year."""

    capital: NotNegativeUsd = 0.0
    lifetime_years: Annotated[Number, Field(gt=0, le=100)] | None = None
    per_year: NotNegativeUsd = 0.0

    @model_validator(mode="after")
    def _capital_has_a_life(self) -> PlanCost:
        if self.capital > 0 and self.lifetime_years is None:
            raise ValueError("capital is spread over lifetime_years; say how many")
        return self

    @property
    def usd_per_year(self) -> float:
        return self.per_year + (self.capital / self.lifetime_years if self.lifetime_years else 0.0)


class PlanOption(Document):
    """Changes that are made together."""

    name: Name
    changes: Annotated[tuple[PlanChange, ...], Field(min_length=1, max_length=50)]
    cost: PlanCost | None = None


class Plan(Document):
    plan: Name
    facility: NameOrPath | None = None  # one that ships, or a file beside this one
    policy: NameOrPath | None = None
    workload: Workload | None = None  # what every option is tried with
    horizon: Annotated[Seconds, Field(gt=0)] | None = None  # as long as jobs arrive, unless said
    begins: Day | None = None  # of that season are weather, prices and carbon
    weather: dict[Name, NormalsDocument] = Field(default_factory=dict)  # of sites, instead of their own
    seeds: Annotated[Whole, Field(ge=1, le=MOST_SEEDS)] = 5
    options: Annotated[tuple[PlanOption, ...], Field(min_length=1, max_length=50)]

    @model_validator(mode="after")
    def _holds_together(self) -> Plan:
        counted = Counter(option.name for option in self.options)
        flaws = [
            Flaw(at=("options", at, "name"), message="two options have this name", value=repr(option.name))
            for at, option in enumerate(self.options)
            if counted[option.name] > 1
        ]
        if self.horizon is None and self.workload is not None and self.workload.trace is None:
            flaws.append(
                Flaw(at=("workload",), message="jobs that are made up come for as long as horizon says")
            )
        if flaws:
            raise FlawedError(flaws[:MOST_FLAWS])
        return self
