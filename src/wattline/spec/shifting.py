"""`shifting` in `policy.yaml`: may jobs with a deadline be held back for cleaner or cheaper hours?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wattline.spec.document import Document
from wattline.spec.quantities import Fraction, Seconds, Whole


class Shifting(Document):
    # What makes an hour a good one: grams of CO2e of a kWh, its price, or both by the policy's weights.
    by: Literal["off", "carbon", "price", "both"] = "off"
    suspend: bool = True  # whether running jobs that checkpoint are suspended for better hours
    # What each takes is part of a job's longest duration: one that was suspended so often is left alone.
    most_suspends: Annotated[Whole, Field(ge=0, le=1000)] = 8
    # How much better than now later hours must be; what hours are expected to be is often wrong.
    worth: Annotated[Fraction, Field(ge=0, le=1)] = 0.05
    switch: Seconds = 70.0  # what saving and restarting take together
    # Kept before a deadline, and of what a job may still run on top of it.
    margin: Seconds = 1800.0
    margin_share: Annotated[Fraction, Field(ge=0, le=1)] = 0.05
    outlook_max_age: Seconds = 10_800.0  # an older outlook is none: jobs run as if nobody knew

    @property
    def is_on(self) -> bool:
        return self.by != "off"
