"""`elastic` of a phase, `resizing` in `policy.yaml`: on how many GPUs may it run, and when on which?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wattline.spec.document import Document
from wattline.spec.quantities import Number, Seconds, Whole

Width = Annotated[Whole, Field(ge=1, le=1_000_000)]


class ElasticDocument(Document):
    """The widths at which a phase may run besides the one it asks for."""

    min: Width
    max: Width
    step: Width = 1  # widths are this many GPUs apart
    # Twice the GPUs are 2 ** alpha times as fast.
    alpha: Annotated[Number, Field(gt=0, le=1)] = 0.9


class Resizing(Document):
    """When running jobs are made narrower or wider."""

    # One that has no place as asked begins narrower: at once, or only if it then ends sooner than by waiting.
    begin: Literal["at_once", "if_sooner"] = "at_once"
    # A job runs at least so long at one width; what it has beyond what it asked for it gives back at once.
    least_time: Annotated[Seconds, Field(ge=0)] = 600.0
    # From having saved to being at work again, as far as one can say beforehand.
    restart: Annotated[Seconds, Field(ge=0)] = 60.0
    # A job grows where it saves at least so many times the time that growing takes.
    least_gain: Annotated[Number, Field(ge=1, le=1000)] = 2.0
