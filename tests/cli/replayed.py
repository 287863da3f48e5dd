"""Small traces, and a facility of sixteen GPUs, for commands that ask the twin."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster"
FACILITY = """\
facility: small
sites:
  here:
    region: eu
    tariff: {energy: 0.2}
    carbon: {zone: DE, intensity: 300}
    feeds: {wall: {rating: 14kW}}
    loops: {room: {kind: air, capacity: 10kW, supply: 22C}}
    racks:
      r1: {cap: 10kW, power: [wall], loop: room, nodes: {count: 2, gpu: A100, gpus: 8, cpus: 64, other: 1kW}}
    storage: {throughput: 1GB/s}
    telemetry: {source: none}
"""


def row(seconds: float, run_seconds: float, gpus: int) -> str:
    at = datetime.fromisoformat("2017-10-01T00:00:00") + timedelta(seconds=seconds)
    return f"{at:%Y-%m-%d %H:%M:%S},{run_seconds:g},{gpus},{run_seconds * gpus:g},vc"


def write_trace(path: Path, rows: Iterable[str]) -> Path:
    path.write_text("\n".join([HEADER, *rows, ""]))
    return path


def write_jobs(path: Path, jobs: int, *, gap_seconds: float = 60.0, seed: int = 1) -> Path:
    """Minutes to an hour on one GPU to eight, one job after the other."""
    chance = random.Random(seed)
    sizes = [(60 * chance.randint(1, 60), chance.choice((1, 1, 2, 4, 8))) for _ in range(jobs)]
    return write_trace(path, [row(at * gap_seconds, *size) for at, size in enumerate(sizes)])
