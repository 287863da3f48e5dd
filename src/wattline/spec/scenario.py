"""A scenario: what happens to a facility while work goes on, for the twin to play through."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from wattline.spec.document import Document
from wattline.spec.faults import Fault, Moment
from wattline.spec.flaws import Flaw, FlawedError
from wattline.spec.quantities import Flag, Fraction, Kelvin, Name, Number, RelativePath, Seconds, Whole
from wattline.units import SECONDS_PER_HOUR

_LONGEST_SECONDS = 31 * 24 * SECONDS_PER_HOUR
_MOST_JOBS = 1_000_000

Factor = Annotated[Number, Field(ge=-100, le=100)]
Rate = Annotated[Number, Field(ge=0, le=100_000)]
Stretch = Annotated[Number, Field(ge=1, le=1000)]


class Burst(Document):
    """Many jobs at nearly the same time."""

    at: Moment
    jobs: Annotated[Whole, Field(ge=1, le=_MOST_JOBS)]
    within: Annotated[Seconds, Field(gt=0)] = 60.0


class Workload(Document):
    """Who comes, how often, and how they work; or a trace, which says all but the last."""

    trace: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    arrival_scale: Annotated[Number, Field(gt=0, le=1e6)] = 1.0
    skip_days: Annotated[Number, Field(ge=0, le=10_000)] = 0.0
    filled: Fraction = 0.0  # what share of all GPUs the jobs of the first half hour ask for
    arrivals_per_hour: Rate = 0.0
    bursts: Annotated[tuple[Burst, ...], Field(max_length=100)] = ()
    gpus: Annotated[tuple[Annotated[Whole, Field(ge=1, le=100_000)], ...], Field(max_length=100)] = ()
    runs: tuple[Seconds, Seconds] | None = None  # from the shortest to the longest
    utilisation: tuple[Fraction, Fraction] | None = None  # from the least to the most
    saves: tuple[Seconds, Seconds] | None = None  # how long between checkpoints, from the shortest on
    # How many times as long as it runs a job may take until its deadline, from the tightest on.
    deadlines: tuple[Stretch, Stretch] | None = None
    burst: Flag = False  # its jobs may go to a cloud

    @field_validator("runs", "utilisation", "saves", "deadlines")
    @classmethod
    def _in_order(cls, span: tuple[float, float] | None) -> tuple[float, float] | None:
        if span is not None and not 0 < span[0] <= span[1]:
            raise ValueError("two values above 0, the smaller first")
        return span

    @model_validator(mode="after")
    def _one_source(self) -> Workload:
        made = ("filled", "arrivals_per_hour", "bursts", "gpus", "runs")
        of_traces = ("arrival_scale", "skip_days")
        if self.trace is not None and (extra := [name for name in made if getattr(self, name)]):
            raise ValueError(f"a trace says when jobs come and what they ask for; remove {', '.join(extra)}")
        if self.trace is None:
            if extra := [name for name in of_traces if name in self.model_fields_set]:
                raise ValueError(f"only a trace has {' and '.join(extra)}")
            if not (self.filled or self.arrivals_per_hour or self.bursts):
                raise ValueError("say filled, arrivals_per_hour or bursts, or name a trace")
            if not self.gpus or self.runs is None:
                raise ValueError("jobs that are made up need gpus (their sizes) and runs (how long)")
        return self


class Condition(Document):
    """What changes around a site for a while; around all of them where none is named."""

    name: Name
    at: Moment
    lasts: Seconds | None = None  # to the end, unless said
    site: Name | None = None
    outside: Kelvin | None = None  # how much warmer
    price_factor: Factor | None = None
    carbon_factor: Annotated[Factor, Field(ge=0)] | None = None
    limit: Fraction | None = None  # what the grid leaves of each feed
    lost: Flag = False  # the site's feeds and links, all of them

    @model_validator(mode="after")
    def _says_something(self) -> Condition:
        by_hour = (self.outside, self.price_factor, self.carbon_factor)
        if not (self.lost or self.limit is not None or any(part is not None for part in by_hour)):
            raise ValueError("a condition says outside, price_factor, carbon_factor, limit or lost")
        if any(part is not None for part in by_hour):
            for seconds in (self.at.after or 0.0, self.lasts or 0.0):
                if seconds % SECONDS_PER_HOUR:
                    raise ValueError("weather, price and carbon change on the hour: say whole hours")
        if self.lost and self.site is None:
            raise ValueError("say which site is lost")
        return self


class Scenario(Document):
    """All times are after the beginning."""

    scenario: Name
    say: Annotated[str, Field(min_length=1, max_length=500)]
    facility: Annotated[str, Field(min_length=1, max_length=1000)]
    lasts: Annotated[Seconds, Field(gt=0, le=_LONGEST_SECONDS)]
    workload: Workload
    faults: Annotated[tuple[Fault, ...], Field(max_length=1000)] = ()
    conditions: Annotated[tuple[Condition, ...], Field(max_length=1000)] = ()
    spot: dict[Name, RelativePath] = Field(default_factory=dict)  # of clouds, files of hourly prices

    @model_validator(mode="after")
    def _happens_in_time(self) -> Scenario:
        happenings: dict[tuple[str | int, ...], Moment] = {
            **{("workload", "bursts", at): one.at for at, one in enumerate(self.workload.bursts)},
            **{("faults", at): one.at for at, one in enumerate(self.faults)},
            **{("conditions", at): one.at for at, one in enumerate(self.conditions)},
        }
        flaws = [
            Flaw(at=(*at, "at"), message=message)
            for at, moment in happenings.items()
            if (message := _untimely(moment, self.lasts))
        ]
        if flaws:
            raise FlawedError(flaws)
        return self


def _untimely(moment: Moment, lasts_seconds: float) -> str:
    if moment.after is None:
        return "nothing here runs steps: say a time after the beginning, such as {after: 10min}"
    return "the scenario has ended by then" if moment.after >= lasts_seconds else ""
