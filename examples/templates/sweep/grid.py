"""Grid: which settings does trial number N try, and what has it found so far?"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

OUT = Path("out")


def settings_of(trial: int, settings: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the sweep with one point of its grid in their place; trials count from 1."""
    points = points_of(settings)
    if not 1 <= trial <= len(points):
        raise SystemExit(f"there is no trial {trial}: the grid in params.json has {len(points)} points")
    return settings | points[trial - 1]


def points_of(settings: dict[str, Any]) -> list[dict[str, Any]]:
    grid: dict[str, list[Any]] = settings["grid"]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def write_result(stage: str, trial: int, found: dict[str, Any]) -> None:
    (OUT / f"{stage}-{trial}.json").write_text(json.dumps({"trial": trial, **found}, indent=2) + "\n")


def read_results(stage: str) -> list[dict[str, Any]]:
    """What the trials of a stage found, the best first."""
    found = [json.loads(path.read_text()) for path in OUT.glob(f"{stage}-*.json")]
    return sorted(found, key=lambda one: (one["validation_loss"], one["trial"]))
