"""A faults file: what breaks, where and when. The emulated facility and the twin read the same one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from wattline.spec.document import Document
from wattline.spec.quantities import Celsius, Fraction, Name, Seconds, Whole


class Moment(Document):
    """When it begins: at a step of a phase, or a time after the run began."""

    phase: Name | None = None
    step: Annotated[Whole, Field(ge=0, le=10**12)] | None = None
    after: Seconds | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Moment:
        by_step = self.phase is not None and self.step is not None
        if by_step == (self.after is not None) or (self.phase is None) != (self.step is None):
            raise ValueError("a moment is either a phase with a step, or a time after the run began")
        return self


class Fault(Document):
    """One thing that breaks. Exactly one of loop, supply, rack or link names it."""

    name: Name
    at: Moment
    lasts: Seconds | None = None  # forever, unless said
    loop: str | None = None
    supply: str | None = None
    rack: str | None = None
    link: str | None = None
    flow: Fraction | None = None  # what is left of a loop's flow
    supply_temperature: Celsius | None = None
    rating: Fraction | None = None  # what is left of a supply's or rack's cap
    bandwidth: Fraction | None = None  # what is left of a link
    wakes: Literal[False] | None = None  # sleeping nodes of a rack do not wake

    @model_validator(mode="after")
    def _one_subject(self) -> Fault:
        allowed = {
            "loop": {"flow", "supply_temperature"},
            "supply": {"rating"},
            "rack": {"rating", "wakes"},
            "link": {"bandwidth"},
        }
        subjects = [kind for kind in allowed if getattr(self, kind) is not None]
        if len(subjects) != 1:
            raise ValueError(f"a fault names exactly one of {', '.join(allowed)}")
        effects = {"flow", "supply_temperature", "rating", "bandwidth", "wakes"}
        given = {effect for effect in effects if getattr(self, effect) is not None}
        if not given or not given <= allowed[subjects[0]]:
            raise ValueError(f"a fault of a {subjects[0]} says {' or '.join(sorted(allowed[subjects[0]]))}")
        return self

    @property
    def subject(self) -> str:
        return self.loop or self.supply or self.rack or self.link or ""


class Faults(Document):
    faults: Annotated[tuple[Fault, ...], Field(min_length=1, max_length=1000)]
