"""Data: jobs with what is known before they start, and whether they came late.

Put your own table at data/jobs.csv (jobs.py names its columns), then `wattline data pin data/jobs.csv`. Until
then `python make_data.py` writes the same bytes every time.
"""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

from jobs import COLUMNS, GROUP, LABEL

SEED, ROWS = 23, 2000
SITES = ("zurich", "frankfurt", "lulea")


def job(draw: random.Random) -> dict[str, object]:
    """Large jobs, long queues and retries make a job late, and halls that are too warm or too cold."""
    row = {
        "gpus": 2 ** draw.randrange(7),
        "hours": round(draw.lognormvariate(1.5, 0.8), 1),
        "queue_minutes": round(draw.expovariate(1 / 40)),
        "inlet_celsius": round(draw.gauss(24, 2.5), 1),
        "retries": min(5, int(draw.expovariate(1.2))),
    }
    strain = (
        0.6 * (math.log2(row["gpus"]) - 3)
        + 0.02 * (row["queue_minutes"] - 40)
        + 1.2 * (abs(row["inlet_celsius"] - 24) - 2)
        + 0.9 * row["retries"]
        + 0.1 * (min(row["hours"], 20) - 6)
    )
    late = int(1.8 * strain + draw.gauss(0, 1) > 0)
    return {GROUP: draw.choice(SITES), **row, LABEL: late}


if __name__ == "__main__":
    path = Path(__file__).parent / "data" / "jobs.csv"
    path.parent.mkdir(exist_ok=True)
    draw = random.Random(SEED)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [GROUP, *COLUMNS, LABEL], lineterminator="\n")
        writer.writeheader()
        writer.writerows(job(draw) for _ in range(ROWS))
    print(f"{path}: {ROWS} rows")
