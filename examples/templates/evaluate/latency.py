"""Latency: how long does one answer take?

Reads models/model.npz and data/test.csv; adds to out/metrics.json, where gates read.
"""

from __future__ import annotations

import time

import numpy as np
from jobs import read_jobs
from model import chances, load

from wattline import train


def main() -> None:
    settings = train.params()
    parameters, jobs = load("models/model.npz"), read_jobs("data/test.csv")
    milliseconds = []
    for at in range(settings["warm_up"] + settings["timed"]):
        one = jobs.features[at % len(jobs.features)][None, :]
        started = time.perf_counter()
        chances(parameters, one)
        milliseconds.append((time.perf_counter() - started) * 1000)
    p50, p95 = np.quantile(milliseconds[settings["warm_up"] :], [0.5, 0.95])
    train.report(latency_p50_ms=p50, latency_p95_ms=p95)
    print(f"one answer takes {p50:.3f} ms, 95 in 100 no more than {p95:.3f} ms")


if __name__ == "__main__":
    main()
