"""Shadow: what would have been different if the candidate had answered yesterday's requests?

Reads both models and data/requests.csv, which nobody looked at before; adds to out/metrics.json, where gates
read.
"""

from __future__ import annotations

import time

import numpy as np
from jobs import read_jobs
from model import Array, Parameters, chances, load

from wattline import train


def main() -> None:
    requests = read_jobs("data/requests.csv").features
    current, current_ms = answer(load("models/current.npz"), requests)
    candidate, candidate_ms = answer(load("models/candidate.npz"), requests)
    metrics = {
        "disagreement": float(((current > 0.5) != (candidate > 0.5)).mean()),
        "shift": float(abs(candidate.mean() - current.mean())),  # of how often it says late
        "latency_p95_ms": float(np.quantile(candidate_ms, 0.95)),
        "current_latency_p95_ms": float(np.quantile(current_ms, 0.95)),
    }
    train.report(**metrics)
    for name, value in metrics.items():
        print(f"{name:24s} {value:.3f}")


def answer(parameters: Parameters, requests: Array) -> tuple[Array, list[float]]:
    """One request after the other, as they came, and how long each took."""
    found, milliseconds = [], []
    for request in requests:
        started = time.perf_counter()
        found.append(chances(parameters, request[None, :])[0])
        milliseconds.append((time.perf_counter() - started) * 1000)
    return np.array(found), milliseconds


if __name__ == "__main__":
    main()
