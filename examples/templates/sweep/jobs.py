"""Jobs: rows about training jobs that a model judges, one column for each thing it may look at."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

COLUMNS = ("gpus", "hours", "queue_minutes", "inlet_celsius", "retries")
GROUP, LABEL = "site", "late"


@dataclass(frozen=True)
class Jobs:
    """What the model sees of each job, the group it belongs to, and whether it came late."""

    features: Array
    groups: Array
    late: Array


def read_jobs(path: str) -> Jobs:
    with Path(path).open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if missing := {GROUP, *COLUMNS, LABEL} - set(reader.fieldnames or ()):
            raise SystemExit(f"{path} has no column {', '.join(sorted(missing))}; jobs.py names what is read")
        return jobs_of(list(reader))


def jobs_of(rows: Sequence[Mapping[str, Any]]) -> Jobs:
    return Jobs(
        features=np.array([[float(row[name]) for name in COLUMNS] for row in rows]),
        groups=np.array([row[GROUP] for row in rows]),
        late=np.array([int(row[LABEL]) for row in rows]),
    )
