"""`scaling` in `policy.yaml`: which nodes may sleep, and how many stay awake for whoever comes next?"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from wattline.spec.document import Document
from wattline.spec.quantities import Fraction, Seconds, Whole

Nodes = Annotated[Whole, Field(ge=0, le=1_000_000)]


class Scaling(Document):
    # A node that nobody used for this long goes to sleep, unless its pool keeps it warm.
    sleep_after: Annotated[Seconds, Field(ge=60)] = 900.0
    # Of those who come, as many as should find nodes awake, by how they came lately.
    warm_hit: Annotated[Fraction, Field(gt=0, lt=1)] = 0.9
    least_warm: Nodes = 0  # unused nodes of each pool that stay awake, whoever came lately
    most_warm: Nodes = 1_000_000
    retry_after: Annotated[Seconds, Field(gt=0)] = 600.0  # a node that did not wake is left alone for this

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least_warm > self.most_warm:
            raise ValueError(f"least_warm ({self.least_warm}) is at most most_warm ({self.most_warm})")
        return self
