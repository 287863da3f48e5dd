"""What came out of a trace file, what did not, and which part of it is kept?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from wattline.errors import UsageError
from wattline.twin.traces.job import TraceJob

Kind = Literal["philly", "pollux", "gavel", "swf", "slurm", "journal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flawed:
    """A job that could not be taken."""

    line: int  # in the file; of a JSON document the number of the job, of a journal that of the record
    rule: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Jobs in order of arrival, and an account of everything else that the file held."""

    name: str
    kind: Kind
    jobs: Sequence[TraceJob]
    refused: tuple[Flawed, ...] = ()  # the first few by each rule, in the order of the file
    refused_by_rule: Mapping[str, int]  # all of them
    unsorted: int = 0  # jobs that stood after one that arrived later
    skipped: int = 0  # good jobs of the days that were skipped
    left_out: int = 0  # good jobs beyond the most that were asked for

    @property
    def refused_jobs(self) -> int:
        return sum(self.refused_by_rule.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which part of a trace is replayed, and how fast it arrives."""

    arrival_scale: float = 1.0  # gaps between arrivals are divided by it
    skip_days: float = 0.0  # since the first arrival of the file
    most_jobs: int | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.arrival_scale) and self.arrival_scale > 0):
            raise UsageError(
                f"arrival scale: a finite number above 0, got {self.arrival_scale}",
                hint="2 lets jobs arrive twice as fast, 0.5 half as fast",
            )
        if not (math.isfinite(self.skip_days) and self.skip_days >= 0):
            raise UsageError(
                f"days to skip: a finite number from 0 on, got {self.skip_days}", hint="0 keeps all days"
            )
        if self.most_jobs is not None and self.most_jobs < 1:
            raise UsageError(f"most jobs: at least 1, got {self.most_jobs}", hint="leave it out to keep all")
