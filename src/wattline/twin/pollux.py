"""Placement-dependent speed: how fast does a profiled training job go on the GPUs it was given?

Reads the measurements published with Pollux (OSDI '21; petuum/adaptdl, branch osdi21-artifact, folder
simulator/traces): seconds per step by placement and samples per GPU, and per batch size how far each epoch
gets. A job that keeps its batch size and its number of GPUs needs the same steps wherever it runs, so its
rate is constant from one placement to the next.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wattline.errors import UnavailableError

# Facts of the artifact: how long each application trains, and where fewer samples fit than were measured.
_EPOCHS = {"bert": 2, "cifar10": 100, "deepspeech2": 80, "imagenet": 90, "ncf": 10, "yolov3": 50}
_MOST_LOCAL = {"yolov3": 8}
# Measured on nodes of four GPUs; a bigger node counts as several of these, which is slower than it is.
_GPUS_PER_NODE = 4
_MOST_NODES = 16
_MOST_ROWS = 100_000  # the largest published table has some 1,700

_FETCH_AGAIN = "the folder is simulator/traces of petuum/adaptdl, branch osdi21-artifact, each file gzipped"

Placement = tuple[int, ...]  # GPUs on each node
Row = Mapping[str, float]
Pair = npt.NDArray[np.float64]  # seconds of a step, and of its synchronisation


@dataclass(frozen=True, slots=True)
class _Steps:
    """Seconds of a whole step, and of its synchronisation, by samples on each GPU."""

    samples: Sequence[float]
    step_seconds: Sequence[float]
    sync_seconds: Sequence[float]

    def at(self, samples: float) -> Pair:
        """Linear in between; the nearest measurement beyond the ends."""
        columns = (self.step_seconds, self.sync_seconds)
        return np.array([np.interp(samples, self.samples, column) for column in columns])


@dataclass(frozen=True, slots=True)
class _Epoch:
    """What one epoch at one batch size showed; progress is in steps at the smallest batch size."""

    progress: float
    gradient_squared: float
    gradient_variance: float


class Profiles:
    """The profiled applications below a folder, each read when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._applications: dict[str, _Application] = {}
        self._rates: dict[tuple[str, int, Placement], float] = {}

    def rate(self, application: str, batch_size: int, placement: Placement) -> float:
        """The fraction of its whole training that the job does in a second there."""
        key = (application, batch_size, placement)
        if key not in self._rates:
            self._rates[key] = 1.0 / self._application(application).training_seconds(batch_size, placement)
        return self._rates[key]

    def undisturbed_seconds(self, application: str, batch_size: int, gpus: int) -> float:
        """How long the whole training takes on as few nodes as hold it."""
        return 1.0 / self.rate(application, batch_size, tuple(_split(gpus)))

    def _application(self, name: str) -> _Application:
        if name not in self._applications:
            if name not in _EPOCHS:
                raise UnavailableError(
                    f"application {name!r} was not profiled", hint=f"known are {', '.join(_EPOCHS)}"
                )
            self._applications[name] = _Application(name, self.folder / name)
        return self._applications[name]


class _Application:
    """One application's tables."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.curves = _read_curves(folder, _EPOCHS[name])
        measured = [(_placement_of(row), row) for row in _read_rows(folder / "placements.csv.gz")]
        wider = _read_rows(folder / "scalability.csv.gz")
        self.placed = _tabulate(measured)
        self.sized = _tabulate(  # by nodes and GPUs
            [((len(nodes), sum(nodes)), row) for nodes, row in measured]
            + [((int(row["num_nodes"]), int(row["num_replicas"])), row) for row in wider]
        )
        self.most_local = _MOST_LOCAL.get(name, int(max(steps.samples[-1] for steps in self.placed.values())))

    def training_seconds(self, batch_size: int, placement: Placement) -> float:
        nodes = tuple(part for gpus in placement for part in _split(gpus))
        if not nodes or not min(self.curves) <= batch_size <= max(self.curves):
            raise UnavailableError(
                f"{self.name}: batch size {batch_size} on {sum(nodes)} GPUs was not profiled",
                hint=f"batch sizes go from {min(self.curves)} to {max(self.curves)}, on one GPU or more",
            )
        local, accumulated = self._share(batch_size, sum(nodes))
        step_seconds, sync_seconds = (float(seconds) for seconds in self._steps(nodes, local))
        # Accumulated passes compute as a step does, and only the last synchronises.
        seconds = step_seconds + accumulated * (step_seconds - sync_seconds)
        return self._steps_needed(local * (accumulated + 1) * sum(nodes)) * seconds

    def _share(self, batch_size: int, gpus: int) -> tuple[int, int]:
        """Samples on each GPU in one pass, and passes beyond the first before GPUs synchronise."""
        each = math.ceil(batch_size / gpus)
        accumulated = math.ceil(each / self.most_local) - 1
        if gpus == 1 and batch_size > min(self.curves):
            # The artifact learns the gradient's noise from two passes where there is one GPU only.
            accumulated = max(1, accumulated)
        local = math.ceil(each / (accumulated + 1))
        return max(1, min(local, max(self.curves) // (gpus * (accumulated + 1)))), accumulated

    def _steps_needed(self, batch_size: int) -> float:
        """Steps to the last epoch's end; the less noise in its gradients, the less a bigger batch gains."""
        smallest = min(self.curves)
        batch_size = max(smallest, batch_size)
        below = max(known for known in self.curves if known <= batch_size)
        above = min(known for known in self.curves if known >= batch_size)
        weight = (batch_size - below) / (above - below) if above > below else 0.0
        needed = reached = 0.0
        for epoch in range(_EPOCHS[self.name]):
            low, high = self.curves[below][epoch], self.curves[above][epoch]
            squared = (1 - weight) * low.gradient_squared + weight * high.gradient_squared
            variance = (1 - weight) * low.gradient_variance + weight * high.gradient_variance
            gain = (variance + squared) / (variance * smallest / batch_size + squared)
            until = min(curve[epoch].progress for curve in self.curves.values())
            needed += (until - reached) / gain
            reached = until
        return needed

    def _steps(self, nodes: Placement, local: int) -> Pair:
        """As measured at that placement; else between the node counts that were, at as many GPUs on each."""
        exact = self.placed.get(_rotate(nodes))
        if exact is not None:
            return exact.at(local)
        count = min(len(nodes), _MOST_NODES)
        known = sorted({each for each, _ in self.sized})
        below = max(each for each in known if each <= count)
        above = min(each for each in known if each >= count)
        weight = (count - below) / (above - below) if above > below else 0.0
        per_node = sum(nodes) / count
        low, high = (
            self._at_size(below, per_node * below, local),
            self._at_size(above, per_node * above, local),
        )
        return (1 - weight) * low + weight * high

    def _at_size(self, nodes: int, gpus: float, local: int) -> Pair:
        counts = sorted(gpus for each, gpus in self.sized if each == nodes)
        measured = np.array([self.sized[nodes, count].at(local) for count in counts])
        return np.array([np.interp(gpus, counts, column) for column in measured.T])


def _split(gpus: int) -> Iterator[int]:
    """GPUs of one node as nodes of the size that was measured."""
    for taken in range(0, gpus, _GPUS_PER_NODE):
        yield min(_GPUS_PER_NODE, gpus - taken)


def _rotate(nodes: Placement) -> Placement:
    """A ring is the same from wherever it is counted: the first of its rotations stands for all."""
    return min(nodes[first:] + nodes[:first] for first in range(len(nodes)))


def _placement_of(row: Row) -> Placement:
    return tuple(map(int, str(int(row["placement"]))))


def _tabulate(rows: Iterable[tuple[tuple[int, ...], Row]]) -> dict[tuple[int, ...], _Steps]:
    """Steps by key; what was measured more than once at as many samples counts by its mean."""
    found: dict[tuple[int, ...], dict[float, list[tuple[float, float]]]] = {}
    for key, row in rows:
        found.setdefault(key, {}).setdefault(row["local_bsz"], []).append(
            (row["step_time"], row["sync_time"])
        )
    tables = {}
    for key, measured in found.items():
        samples = sorted(measured)
        means = [np.mean(measured[each], axis=0) for each in samples]
        tables[key] = _Steps(samples, [float(mean[0]) for mean in means], [float(mean[1]) for mean in means])
    return tables


def _read_curves(folder: Path, epochs: int) -> dict[int, list[_Epoch]]:
    """What each epoch reached, by batch size."""
    curves = {}
    for path in sorted(folder.glob("validation-*.csv.gz")):
        batch_size = int(path.name.removeprefix("validation-").removesuffix(".csv.gz"))
        curves[batch_size] = [
            _Epoch(row["progress"], row["grad_sqr"], row["grad_var"]) for row in _read_rows(path)
        ]
        if len(curves[batch_size]) < epochs:
            raise UnavailableError(
                f"{path}: {len(curves[batch_size])} epochs, {epochs} are needed", hint=_FETCH_AGAIN
            )
    if not curves:
        raise UnavailableError(f"{folder}: no validation-*.csv.gz", hint=_FETCH_AGAIN)
    return curves


def _read_rows(path: Path) -> list[Row]:
    """Tables of numbers, nothing else."""
    try:
        with gzip.open(path, "rt", encoding="ascii", newline="") as lines:
            reader = csv.DictReader(lines, strict=True)
            return [
                {name: float(value) for name, value in row.items()}
                for row in itertools.islice(reader, _MOST_ROWS)
            ]
    except (OSError, EOFError, ValueError, TypeError, csv.Error) as error:
        raise UnavailableError(f"{path}: not a readable profile: {error}", hint=_FETCH_AGAIN) from error
