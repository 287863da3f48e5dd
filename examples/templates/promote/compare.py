"""Compare: is the candidate better than the current model, and worse for nobody?

Reads both models and data/acceptance.csv; adds to out/metrics.json, where gates read.
"""

from __future__ import annotations

import numpy as np
from jobs import read_jobs
from model import chances, load

from wattline import train


def main() -> None:
    jobs = read_jobs("data/acceptance.csv")
    right = {
        name: (chances(load(f"models/{name}.npz"), jobs.features) > 0.5) == jobs.late
        for name in ("current", "candidate")
    }
    changes = {}
    for group in np.unique(jobs.groups):
        here = jobs.groups == group
        changes[str(group)] = float(right["candidate"][here].mean() - right["current"][here].mean())
        print(f"{group:12s} {changes[str(group)]:+.3f}  over {here.sum()} jobs")
    metrics = {
        "accuracy": float(right["candidate"].mean()),
        "current_accuracy": float(right["current"].mean()),
        "accuracy_change": float(right["candidate"].mean() - right["current"].mean()),
        "worst_change": min(changes.values()),
    }
    train.report(**metrics)
    for name, value in metrics.items():
        print(f"{name:20s} {value:.3f}")


if __name__ == "__main__":
    main()
