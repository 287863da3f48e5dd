"""`modes`, of a phase and of a policy: in which ways may a phase run, and when in which?"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from wattline.spec.document import Document
from wattline.spec.preparation import Variable
from wattline.spec.quantities import Fraction, Name, Number, Seconds, Usd

Change = Literal["small", "normal", "large"]


class Way(Document):
    """How a phase runs in one mode, where that is another way than it says itself."""

    run: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None
    env: Annotated[dict[Variable, Annotated[str, Field(max_length=10_000)]], Field(max_length=100)] = Field(
        default_factory=dict
    )
    max_duration: Annotated[Seconds, Field(gt=0)] | None = None


class Modes(Document):
    """When a phase that says `mode: auto` runs approximately."""

    # What a release to each channel risks; one that is not here risks all.
    risk: Annotated[dict[Name, Fraction], Field(max_length=200)] = Field(default_factory=dict)
    # Of that, by how large the change is said to be.
    small: Fraction = 0.5
    # What a release rests on is canonical where the risk is above this.
    canonical_above: Fraction = 0.0
    # All else is approximate where less than this is left of any of its team's budgets …
    budget_below: Fraction | None = None
    # … or where it would cost more than this.
    cost_above: Annotated[Usd, Field(ge=0)] | None = None

    def risk_of(self, channel: str, change: str) -> float:
        """From 0 to 1: a small change risks less, a large one all that its channel and half the rest."""
        risk = self.risk.get(channel, 1.0)
        if change == "small":
            return risk * self.small
        return risk + (1.0 - risk) / 2.0 if change == "large" else risk


class Throttling(Document):
    """Who gives way first where something is short: by what it loses, weighed by what it is worth."""

    cost: Annotated[Number, Field(ge=0, le=10)] = 0.0  # what a useful GPU-hour of it costs
    priority: Annotated[Number, Field(ge=0, le=10)] = 0.0
    confidence: Annotated[Number, Field(ge=0, le=10)] = 0.0  # how likely it is to be worth it

    @cached_property
    def is_on(self) -> bool:
        return self.cost > 0.0 or self.priority > 0.0 or self.confidence > 0.0
