"""`queue` in `policy.yaml`: how long may a queue become before who comes is told so at once?"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from wattline.spec.document import Document
from wattline.spec.quantities import Seconds, Whole


class QueueBound(Document):
    """Of the fleet, of a class or of a team; asked once, when a run is submitted."""

    max_wait: Annotated[Seconds, Field(gt=0)] | None = None  # by the forecast of that moment
    by: Literal["p50", "p90"] = "p50"  # which of its times counts
    max_waiting_jobs: Annotated[Whole, Field(ge=1, le=10_000_000)] | None = None
    mode: Literal["refuse", "warn"] = "refuse"

    @model_validator(mode="after")
    def _bounds_something(self) -> Self:
        if self.max_wait is None and self.max_waiting_jobs is None:
            raise ValueError("a queue is bounded by max_wait, max_waiting_jobs or both: say at least one")
        return self
