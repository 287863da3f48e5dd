"""Which jobs of a file are good, and which are refused and why?

Every check that does not depend on the format is here. Jobs are packed at once: see `job`.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from wattline.spec.tree import printable
from wattline.twin.traces.flaws import FlawError, check_gpus
from wattline.twin.traces.job import PACKED, ROW, Table
from wattline.twin.traces.trace import Flawed, Kind

FIRST_FEW = 5
LONGEST_NAME = 200
MOST_SECONDS = 1e11  # some three thousand years; a float of that size still tells milliseconds apart
MOST_GPUS = 1_000_000
MOST_CPUS = 1_000_000
MOST_BATCH = 2**31 - 1


class Gathering:
    """Takes one job after the other."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.refused: list[Flawed] = []
        self.refused_by_rule: Counter[str] = Counter()
        self._packed = bytearray()
        self._words: dict[str, int] = {}
        self._names: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._packed) // PACKED.size

    def take(
        self,
        line: int,
        arrives_seconds: float,
        gpus: int,
        work_seconds: float,
        project: str = "default",
        *,
        name: str | None = None,
        application: str = "",
        batch_size: int = 0,
        limit_seconds: float = math.nan,
        cpus: float = 1.0,
    ) -> None:
        """Keep a job, or raise FlawError and keep nothing of it. A format names all of its jobs or none."""
        # NaN fails every comparison: one test finds all that is wrong, and only then it is asked what.
        if not (0 <= arrives_seconds <= MOST_SECONDS and 0 < work_seconds <= MOST_SECONDS):
            _check_seconds("the arrival", arrives_seconds)
            _check_seconds("the run time", work_seconds)
            raise FlawError("the run time is zero", work_seconds)
        if not 0 < gpus <= MOST_GPUS:
            check_gpus(gpus)
            raise FlawError("more GPUs than any facility has", gpus)
        if not 0 <= batch_size <= MOST_BATCH:
            raise FlawError("the batch size is out of range", batch_size)
        project_number = self._words.get(project)
        if project_number is None:
            project_number = self._number_of("the project", project)
        application_number = self._words.get(application)
        if application_number is None:
            application_number = self._number_of("the application", application)
        if name is not None:
            self._claim(name)
        # What nobody knows is written as -1, 0 or nothing at all, and is no reason to refuse a job.
        self._packed += PACKED.pack(
            arrives_seconds,
            work_seconds,
            limit_seconds if 0 < limit_seconds <= MOST_SECONDS else math.nan,
            cpus if 0 < cpus <= MOST_CPUS else 1.0,
            gpus,
            batch_size,
            line,
            project_number,
            application_number,
        )

    def refuse(self, line: int, flaw: FlawError) -> None:
        """Count it; the first few by each rule are kept to be shown."""
        self.refused_by_rule[flaw.rule] += 1
        if self.refused_by_rule[flaw.rule] <= FIRST_FEW:
            self.refused.append(Flawed(line=line, rule=flaw.rule, value=printable(str(flaw.value))))

    @property
    def arrivals(self) -> NDArray[np.float64]:
        """When jobs arrived by the file's own clock, in the order of the file."""
        return np.frombuffer(self._packed, dtype=ROW)["arrives_seconds"]

    def table(self, order: NDArray[np.intp], arrives_seconds: NDArray[np.float64]) -> Table:
        """These jobs in this order, arriving then."""
        rows = np.frombuffer(self._packed, dtype=ROW)[order]
        rows["arrives_seconds"] = arrives_seconds
        names = list(self._names)
        return Table(
            rows=rows,
            words=tuple(self._words),
            names=[names[number] for number in order.tolist()] if names else None,
            kind=self.kind,
        )

    def _number_of(self, what: str, word: str) -> int:
        _check_name(what, word)
        return self._words.setdefault(word, len(self._words))

    def _claim(self, name: str) -> None:
        if name in self._names:
            raise FlawError("the name was used before", name)
        _check_name("the name", name)
        self._names[name] = None


def _check_seconds(what: str, seconds: float) -> None:
    if not math.isfinite(seconds):
        raise FlawError(f"{what} is not finite", seconds)
    if seconds < 0:
        raise FlawError(f"{what} is negative", seconds)
    if seconds > MOST_SECONDS:
        raise FlawError(f"{what} is beyond all times", seconds)


def _check_name(what: str, name: str) -> None:
    """Names reach terminals, logs and the keys of a journal."""
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise FlawError(f"{what} is not printable, or longer than {LONGEST_NAME} characters", name)
