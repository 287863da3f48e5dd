"""Score: how often is the model right, how sure is that, and is it as good for every group?

Reads out/predictions.csv; adds to out/metrics.json, where gates read, and writes out/report.md for people.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from jobs import GROUP, LABEL

from wattline import train

Array = np.ndarray[Any, np.dtype[Any]]


def main() -> None:
    settings = train.params()
    with Path("out/predictions.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    groups = np.array([row[GROUP] for row in rows])
    late = np.array([int(row[LABEL]) for row in rows])
    chance = np.array([float(row["chance"]) for row in rows])
    right = (chance > 0.5) == late

    by_group = {str(group): float(right[groups == group].mean()) for group in np.unique(groups)}
    low, high = interval(right, settings["resamples"], settings["seed"])
    metrics = {
        "accuracy": float(right.mean()),
        "accuracy_low": low,  # 95 in 100 test sets of this size lie between these
        "accuracy_high": high,
        "calibration_error": calibration_error(chance, late, settings["bins"]),
        "fairness_gap": max(by_group.values()) - min(by_group.values()),
    }
    train.report(**metrics)
    table = [
        f"# {len(rows)} jobs of the test set\n",
        "| measure | value |\n|---|---|",
        *(f"| {name} | {value:.3f} |" for name, value in metrics.items()),
        f"\n| {GROUP} | jobs | accuracy |\n|---|---|---|",
        *(f"| {group} | {(groups == group).sum()} | {value:.3f} |" for group, value in by_group.items()),
    ]
    Path("out/report.md").write_text("\n".join(table) + "\n")
    print("\n".join(table))


def interval(right: Array, resamples: int, seed: int) -> tuple[float, float]:
    """Between which accuracies 95 in 100 test sets drawn from this one lie."""
    rng = np.random.default_rng(seed)
    drawn = right[rng.integers(len(right), size=(resamples, len(right)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def calibration_error(chance: Array, late: Array, bins: int) -> float:
    """How far chances are from what came true, on average."""
    which = np.minimum((chance * bins).astype(int), bins - 1)
    error = 0.0
    for at in range(bins):
        here = which == at
        if here.any():
            error += here.mean() * abs(chance[here].mean() - late[here].mean())
    return float(error)


if __name__ == "__main__":
    main()
