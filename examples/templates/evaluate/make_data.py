"""Data: jobs with what is known before they start, whether they came late, and a model that foretells it.

Put your own model and test set in their place and pin them: `wattline data pin models/model.npz`, `wattline
data pin data/test.csv`. Until then `python make_data.py` writes the same bytes every time.
"""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

import numpy as np
from jobs import COLUMNS, GROUP, LABEL, Jobs, jobs_of
from model import Parameters

SEED = 17
SITES = ("zurich", "frankfurt", "lulea")


def job(draw: random.Random) -> dict[str, object]:
    """Large jobs, warm halls, long queues and retries make a job late; some luck does too."""
    row = {
        "gpus": 2 ** draw.randrange(7),
        "hours": round(draw.lognormvariate(1.5, 0.8), 1),
        "queue_minutes": round(draw.expovariate(1 / 40)),
        "inlet_celsius": round(draw.gauss(24, 2.5), 1),
        "retries": min(5, int(draw.expovariate(1.2))),
    }
    strain = (
        0.8 * (math.log2(row["gpus"]) - 3)
        + 0.02 * (row["queue_minutes"] - 40)
        + 0.9 * max(0.0, row["inlet_celsius"] - 25)
        + 0.9 * row["retries"]
        + 0.15 * (min(row["hours"], 20) - 6)
    )
    late = int(1.6 * (strain - 1) + draw.gauss(0, 1) > 0)
    return {GROUP: draw.choice(SITES), **row, LABEL: late}


def jobs(rows: int, seed: int) -> list[dict[str, object]]:
    draw = random.Random(seed)
    return [job(draw) for _ in range(rows)]


def write_jobs(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [GROUP, *COLUMNS, LABEL], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{path}: {len(rows)} rows")


def write_model(path: Path, parameters: Parameters) -> None:
    path.parent.mkdir(exist_ok=True)
    np.savez(path, allow_pickle=False, **parameters)
    print(f"{path}: {sum(value.size for value in parameters.values())} parameters")


def fit(known: Jobs, hidden: int, steps: int, seed: int) -> Parameters:
    """Plain descent over all rows. Rounded, so that the file is the same from any processor."""
    rng = np.random.default_rng(seed)
    mean, scale = known.features.mean(axis=0), known.features.std(axis=0)
    inputs = (known.features - mean) / scale
    first = rng.standard_normal((len(COLUMNS), hidden)) * 0.5
    layers = [first, np.zeros(hidden), np.zeros(hidden), np.zeros(1)]
    for _ in range(steps):
        inner = np.tanh(inputs @ layers[0] + layers[1])
        slope = (1 / (1 + np.exp(-(inner @ layers[2] + layers[3]))) - known.late) / len(known.late)
        inner_slope = slope[:, None] * layers[2] * (1 - inner * inner)
        slopes = [inputs.T @ inner_slope, inner_slope.sum(axis=0), inner.T @ slope, slope.sum(keepdims=True)]
        layers = [layer - 1.0 * down for layer, down in zip(layers, slopes, strict=True)]
    names = ("mean", "scale", "hidden", "hidden_bias", "output", "output_bias")
    return {name: np.round(value, 3) for name, value in zip(names, (mean, scale, *layers), strict=True)}


if __name__ == "__main__":
    here = Path(__file__).parent
    write_jobs(here / "data" / "test.csv", jobs(1500, SEED))
    write_model(here / "models" / "model.npz", fit(jobs_of(jobs(2500, SEED + 1)), 12, 600, SEED))
