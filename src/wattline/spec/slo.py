"""`slos` in `policy.yaml`: what a team may count on, how often, and under which conditions."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from wattline import units
from wattline.enums import plain_members
from wattline.spec.document import Document
from wattline.spec.expression import LONGEST_EXPRESSION, compile_expression
from wattline.spec.flaws import Flaw, FlawedError
from wattline.spec.quantities import Flag, Fraction, Name

# What `while` may speak of; each is a share of one, of the site where a job is or, before it has one, of the
# roomiest site that may take it.
SLO_CONDITIONS = ("power_headroom", "cooling_headroom", "link_headroom", "gpus_free")
CHECKPOINT_INTERVAL = "checkpoint-interval"


@plain_members
class Indicator(StrEnum):
    """What is counted, and so what a share of it is good."""

    START_WAIT = "start_wait_seconds"  # jobs that start for the first time
    RESUME = "resume_seconds"  # jobs that go on after an attempt that was not their last
    PROMOTION = "promotion_seconds"  # releases, from the gates' word
    ROLLBACK = "rollback_seconds"  # releases that are taken back, from their promotion
    COMPLETION = "completion"  # jobs that end, by themselves or by the ladder
    LOST_WORK = "lost_work"  # GPU-hours held by attempts
    THROTTLED = "throttled"  # GPU-hours run, capped or at a smaller batch
    CAP_VIOLATIONS = "cap_violations"  # hours of each metered rack and supply


TIMED = frozenset({Indicator.START_WAIT, Indicator.RESUME, Indicator.PROMOTION, Indicator.ROLLBACK})
_WORDS = {
    Indicator.START_WAIT: ("jobs", "start"),
    Indicator.RESUME: ("jobs", "go on"),
    Indicator.PROMOTION: ("releases", "are promoted"),
    Indicator.ROLLBACK: ("bad releases", "are taken back"),
    Indicator.COMPLETION: ("jobs", "succeed"),
    Indicator.LOST_WORK: ("GPU-hours", "are kept"),
    Indicator.THROTTLED: ("GPU-hours", "run at full speed"),
    Indicator.CAP_VIOLATIONS: ("hours of racks and supplies", "are below the cap"),
}
_OF_RELEASES = frozenset({Indicator.PROMOTION, Indicator.ROLLBACK})
_WINDOWS_SECONDS = {"7d": 7 * 86400.0, "28d": 28 * 86400.0}


def _parse_within(value: object) -> object:
    return value if value == CHECKPOINT_INTERVAL else units.DURATION.parse(value)


def _check_while(text: str) -> str:
    if text and not compile_expression(text, SLO_CONDITIONS).names:
        raise ValueError(f"a condition speaks of at least one of {', '.join(SLO_CONDITIONS)}")
    return text


Within = Annotated[float | Literal["checkpoint-interval"], BeforeValidator(_parse_within)]


class Slo(Document):
    """Such as: 95 % of jobs start within 12 minutes while power headroom is above 20 %."""

    name: Name
    indicator: Indicator
    objective: Annotated[Fraction, Field(gt=0)]  # the share that must be good
    within: Within | None = None  # what is good, for indicators in seconds
    window: Literal["7d", "28d"] = "28d"
    while_: Annotated[
        str, Field(max_length=LONGEST_EXPRESSION, alias="while"), AfterValidator(_check_while)
    ] = ""
    class_: Annotated[Name | None, Field(alias="class")] = None
    project: Name | None = None
    across_sites: Flag = False  # only resumes at another site

    @model_validator(mode="after")
    def _fits_its_indicator(self) -> Slo:
        flaws = []
        kind = self.indicator
        if kind in TIMED and self.within is None:
            flaws.append(Flaw(at=("indicator",), message=f"{kind.value} needs within, such as within: 12min"))
        if kind not in TIMED and self.within is not None:
            flaws.append(Flaw(at=("within",), message=f"{kind.value} is good or not whatever it takes"))
        if self.within == CHECKPOINT_INTERVAL and kind is not Indicator.RESUME:
            flaws.append(Flaw(at=("within",), message=f"only {Indicator.RESUME.value} has such an interval"))
        if self.across_sites and kind is not Indicator.RESUME:
            flaws.append(Flaw(at=("across_sites",), message=f"only {Indicator.RESUME.value} crosses sites"))
        if self.class_ is not None and (kind in _OF_RELEASES or kind is Indicator.CAP_VIOLATIONS):
            flaws.append(Flaw(at=("class",), message=f"what {kind.value} counts has no class"))
        if self.project is not None and kind is Indicator.CAP_VIOLATIONS:
            flaws.append(Flaw(at=("project",), message="a rack or supply is of no project"))
        if self.while_ and kind in _OF_RELEASES:
            flaws.append(Flaw(at=("while",), message="a release is at no site"))
        if self.while_ and kind is Indicator.CAP_VIOLATIONS:
            flaws.append(Flaw(at=("while",), message="a cap holds whatever the conditions"))
        if flaws:
            raise FlawedError(flaws)
        return self

    @property
    def window_seconds(self) -> float:
        return _WINDOWS_SECONDS[self.window]

    def sentence(self) -> str:
        """In words: "95 % of jobs start within 12 min while power_headroom > 20%, over 28 d"."""
        what, does = _WORDS[self.indicator]
        parts = [units.format_share(self.objective), "of", what]
        if self.class_ is not None:
            parts.append(f"of class {self.class_}")
        if self.project is not None:
            parts.append(f"of {self.project}")
        parts.append(f"{does} at another site" if self.across_sites else does)
        if isinstance(self.within, str):
            parts.append("within one checkpoint interval")
        elif self.within is not None:
            parts.append(f"within {units.format_seconds(self.within)}")
        if self.while_:
            parts.append(f"while {self.while_}")
        return f"{' '.join(parts)}, over {units.format_seconds(self.window_seconds)}"


def _check_names(slos: tuple[Slo, ...]) -> tuple[Slo, ...]:
    names = [slo.name for slo in slos]
    flaws = [
        Flaw(at=(position, "name"), message="two SLOs have this name", value=repr(name))
        for position, name in enumerate(names)
        if name in names[:position]
    ]
    if flaws:
        raise FlawedError(flaws)
    return slos


Slos = Annotated[tuple[Slo, ...], Field(max_length=100), AfterValidator(_check_names)]


class SloDocument(Document):
    """SLOs in a file of their own, to ask a replay about."""

    slos: Annotated[Slos, Field(min_length=1)]
