"""Predict: what does the model say of every job in the test set?

Reads models/model.npz and data/test.csv; writes out/predictions.csv.
"""

from __future__ import annotations

import csv
from pathlib import Path

from jobs import GROUP, LABEL, read_jobs
from model import chances, load


def main() -> None:
    jobs = read_jobs("data/test.csv")
    found = chances(load("models/model.npz"), jobs.features)
    path = Path("out/predictions.csv")
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([GROUP, LABEL, "chance"])
        writer.writerows(
            (group, late, f"{chance:.6f}")
            for group, late, chance in zip(jobs.groups, jobs.late, found, strict=True)
        )
    print(f"{path}: {len(found)} rows")


if __name__ == "__main__":
    main()
