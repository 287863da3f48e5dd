"""`bursting` in `policy.yaml`: which jobs may go to a cloud region, and how long before it is too late?"""

from __future__ import annotations

from typing import Literal

from wattline.spec.document import Document
from wattline.spec.quantities import Seconds


class Bursting(Document):
    # Those whose pipeline says `burst`, all of them, or none whatever they say.
    jobs: Literal["asked", "all", "none"] = "asked"
    # Kept before the last moment at which a job could start there and still be in time.
    margin: Seconds = 900.0
