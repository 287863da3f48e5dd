"""Occupancy: how many of the GPUs that jobs held were idle, and of how many is that known?

Accounting says how many GPUs a job held on a node, not which; meters say which GPUs were busy, not for whom.
So they are compared node by node: as many as were allocated, less those that were at work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wattline.observing.series import Gpu, Matrix, Meters
from wattline.units import JOULES_PER_KWH, SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupied:
    """What jobs held, beside what meters saw there."""

    idle_gpu_hours: float | None  # held and not at work
    busy_fraction: float | None  # of GPUs that were held, on average
    busy_coverage: float  # of the GPU-hours that jobs held
    energy_kwh: float | None  # of all GPUs
    watts_coverage: float  # of the GPU-hours that jobs held


def node_of_labels(labels: Sequence[str], nodes: Mapping[str, object]) -> dict[str, str]:
    """Which of Slurm's nodes each label means: by its whole name, or without its domain."""
    short = {name.partition(".")[0].lower(): name for name in nodes}
    found = {}
    for label in labels:
        name = label if label in nodes else short.get(label.partition(".")[0].lower())
        if name is not None:
            found[label] = name
    return found


def find_occupied(
    meters: Meters,
    held: Matrix,
    nodes: Sequence[str],
    of_labels: Mapping[str, str],
    watts: Matrix | None,
    step_seconds: float,
) -> Occupied:
    rows = {name: number for number, name in enumerate(nodes)}
    of_gpu = np.array([rows.get(of_labels.get(host, ""), -1) for host, _ in meters.gpus], dtype=int)
    total = float(held.sum())
    busy, idling = meters.get("busy_fraction"), meters.get("idle_fraction")
    idle = mean_busy = None
    busy_coverage = 0.0
    if busy is not None and idling is not None:
        known = np.minimum(held, _by_node(np.isfinite(idling), of_gpu, held.shape))
        working = _by_node(np.nan_to_num(1.0 - idling), of_gpu, held.shape)
        idle = float(np.clip(known - working, 0.0, None).sum()) * step_seconds / SECONDS_PER_HOUR
        work = _by_node(np.nan_to_num(busy), of_gpu, held.shape)
        mean_busy = float(np.minimum(work, known).sum() / known.sum()) if known.sum() else None
        busy_coverage = float(known.sum()) / total if total else 0.0
    energy, watts_coverage = None, 0.0
    if watts is not None:
        energy = float(np.nansum(watts)) * step_seconds / JOULES_PER_KWH
        metered = _by_node(np.isfinite(watts), of_gpu, held.shape)
        watts_coverage = float(np.minimum(held, metered).sum()) / total if total else 0.0
    return Occupied(
        idle_gpu_hours=idle,
        busy_fraction=mean_busy,
        busy_coverage=busy_coverage,
        energy_kwh=energy,
        watts_coverage=watts_coverage,
    )


def strangers(
    gpus: Sequence[Gpu], of_labels: Mapping[str, str], nodes: Mapping[str, int]
) -> tuple[set[str], set[str]]:
    """Hosts that only Prometheus tells of, and nodes with GPUs that only Slurm tells of."""
    told = {host for host, _ in gpus}
    known = {of_labels[host] for host in told if host in of_labels}
    return told - set(of_labels), {name for name, count in nodes.items() if count and name not in known}


def _by_node(matrix: NDArray[np.bool_] | Matrix, of_gpu: NDArray[np.int_], shape: tuple[int, ...]) -> Matrix:
    added = np.zeros(shape)
    is_known = of_gpu >= 0
    np.add.at(added, of_gpu[is_known], matrix[is_known].astype(float))
    return added
