"""`power_sharing` in `policy.yaml`: are watts divided by caps where there are not enough of them for all?"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from wattline.spec.document import Document
from wattline.spec.pipeline import Time
from wattline.spec.quantities import Fraction, Name, Seconds, Watts


class Hold(Document):
    """A grid event: the most that a site may draw for a while."""

    name: Name
    site: Name
    at: Time
    lasts: Annotated[Seconds, Field(gt=0)]
    watts: Annotated[Watts, Field(gt=0)]

    def is_on(self, at: float) -> bool:
        return 0.0 <= at - self.at.timestamp() < self.lasts

    def next_change_at(self, at: float) -> float | None:
        """When it begins or ends; None: it is over."""
        begins_at = self.at.timestamp()
        return next((change for change in (begins_at, begins_at + self.lasts) if change > at), None)


class PowerSharing(Document):
    # What a job counts for: all that its cap lets it draw, or what meters read. Off: watts are not shared.
    by: Literal["off", "caps", "meters"] = "off"
    least_cap: Annotated[Fraction, Field(gt=0, le=1)] = 0.4  # of a device's limit; nobody is capped below
    # Of a supply or a hold, kept free where meters are believed: they err, and draw wanders.
    guard: Annotated[Fraction, Field(ge=0, lt=1)] = 0.008
    # Of its idle draw, what a node that nobody uses still takes; less than 100 % where they go to sleep.
    asleep: Annotated[Fraction, Field(ge=0, le=1)] = 1.0
    holds: Annotated[tuple[Hold, ...], Field(max_length=1000)] = ()

    @cached_property  # asked in every decision
    def is_on(self) -> bool:
        return self.by != "off"

    @model_validator(mode="after")
    def _holds_need_caps(self) -> Self:
        if self.holds and not self.is_on:
            raise ValueError("holds are kept by sharing power: say `by: caps` or `by: meters`")
        return self
