"""Verify: is the candidate a model at all, and one that takes what the current one takes?

Reads models/candidate.npz and models/current.npz; adds to out/metrics.json, where gates read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jobs import COLUMNS
from model import load

from wattline import train


def main() -> None:
    candidate, current = load("models/candidate.npz"), load("models/current.npz")
    faults = []
    if set(candidate) != set(current):
        faults.append(f"its parts differ from the current model's: {sorted(set(candidate) ^ set(current))}")
    for name, value in candidate.items():
        if not np.isfinite(value).all():
            faults.append(f"{name} is not finite everywhere")
    if any(candidate.get(name, np.empty(0)).shape != (len(COLUMNS),) for name in ("mean", "scale")):
        faults.append(f"it does not take {len(COLUMNS)} columns: {', '.join(COLUMNS)}")
    size_bytes = Path("models/candidate.npz").stat().st_size
    train.report(faults=len(faults), size_bytes=size_bytes)
    print("\n".join(faults) or f"the candidate is sound: {size_bytes} bytes, {len(candidate)} parts")
    if faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
