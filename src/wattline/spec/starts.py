"""`starts`, of a site and of a policy: how many jobs may begin at once, and how far apart?"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import Field

from wattline.facility import Starts
from wattline.spec.document import Document
from wattline.spec.quantities import Seconds, Whole

Several = Annotated[Whole, Field(ge=1, le=1_000_000)]


class StartsDocument(Document):
    """For each site by itself; where a site and the policy both say something, both hold."""

    at_once: Several | None = None
    within: Annotated[Seconds, Field(gt=0)] = 60.0
    spacing: Seconds = 0.0
    loads_at_once: Several | None = None

    @cached_property  # asked in every decision
    def starts(self) -> Starts:
        return Starts(
            at_once=self.at_once,
            within_seconds=self.within,
            spacing_seconds=self.spacing,
            loads_at_once=self.loads_at_once,
        )

    @cached_property
    def is_on(self) -> bool:
        return self.starts.is_on
