"""`sharing` in `policy.yaml`: who goes first, who may be asked to make way, how long anybody is overtaken."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wattline.spec.document import Document
from wattline.spec.quantities import Flag, Seconds, Whole


class Sharing(Document):
    # What a team held counts half after this long; what it holds now always counts in full.
    memory: Literal["day", "week", "month"] = "week"
    # Overtaken for longer than this, a place is reserved for a job, and kept for it as it empties.
    patience: Annotated[Seconds, Field(ge=0)] | None = 86400.0
    reservations: Annotated[Whole, Field(ge=1, le=100)] = 1  # at once
    # May jobs that save checkpoints be asked to make way for a team that holds less than its share?
    preempt: Flag = False
    least_runtime: Annotated[Seconds, Field(ge=0)] = 600.0  # nobody is asked to make way sooner
