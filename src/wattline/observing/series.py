"""Series: what did a Prometheus keep of each GPU, step by step?

Counters are asked for as they stand at each step, and what they grew by is counted here; gauges are averaged
by the server over each step. A window is asked for in pieces that fit into a bounded answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from wattline.observing.asking import ReadOnly
from wattline.observing.remarks import Remarks
from wattline.observing.window import Window
from wattline.telemetry.asking import MeterError, TooMuchError, UnansweredError

Matrix = NDArray[np.float64]  # a row for each GPU, a column for each step; NaN: not known
Gpu = tuple[str, int]  # the node as its label says, and the number

_MOST_POINTS = 400_000  # in one answer
_BYTES_EACH_POINT, _BYTES_EACH_SERIES, _BYTES_MORE = 48, 1024, 1 << 18
_MOST_GPUS = 200_000
_LONGEST_GAP_STEPS = 5  # over which a counter's growth is spread evenly
_MOST_UNANSWERED = 2
_FINEST_SECONDS = 15


_AS_IT_STANDS = "{metric}"
# What is scraped less often than once a step is taken as it stood.
_MEAN = "(avg_over_time({metric}[{step}s]) or {metric})"
# The clock of a GPU without work says nothing of how fast it works.
_MEAN_AT_WORK = (
    "(avg_over_time(({metric} and on (Hostname, instance, gpu)"
    " (DCGM_FI_DEV_GPU_UTIL{match} >= 5))[{step}s:{fine}s]) or avg_over_time({metric}[{step}s]) or {metric})"
)
_SHARE_BELOW_5 = "avg_over_time(({metric} < bool 5)[{step}s:{fine}s])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """One quantity: how exporters call it, what is asked, and what makes it the unit its name ends with."""

    quantity: str
    metrics: tuple[str, ...]  # the first that answers is taken
    query: str = _MEAN
    worth: float = 1.0

    @property
    def counts(self) -> bool:
        return self.query == _AS_IT_STANDS


# Names and units of NVIDIA's DCGM exporter: violations in ns, energy in mJ, busy in percent.
DCGM = (
    Asking(
        quantity="power_violation_seconds",
        metrics=("DCGM_FI_DEV_POWER_VIOLATION",),
        query=_AS_IT_STANDS,
        worth=1e-9,
    ),
    Asking(
        quantity="thermal_violation_seconds",
        metrics=("DCGM_FI_DEV_THERMAL_VIOLATION",),
        query=_AS_IT_STANDS,
        worth=1e-9,
    ),
    Asking(quantity="busy_fraction", metrics=("DCGM_FI_DEV_GPU_UTIL",), worth=0.01),
    Asking(quantity="idle_fraction", metrics=("DCGM_FI_DEV_GPU_UTIL",), query=_SHARE_BELOW_5),
    Asking(quantity="clock_mhz", metrics=("DCGM_FI_DEV_SM_CLOCK",), query=_MEAN_AT_WORK),
    Asking(quantity="most_clock_mhz", metrics=("DCGM_FI_DEV_MAX_SM_CLOCK",)),
    Asking(quantity="watts", metrics=("DCGM_FI_DEV_POWER_USAGE",)),
    Asking(
        quantity="limit_watts", metrics=("DCGM_FI_DEV_POWER_MGMT_LIMIT", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT")
    ),
    Asking(quantity="celsius", metrics=("DCGM_FI_DEV_GPU_TEMP",)),
    Asking(
        quantity="joules",
        metrics=("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",),
        query=_AS_IT_STANDS,
        worth=1e-3,
    ),
)


class _Metric(msgspec.Struct):
    Hostname: str = ""
    instance: str = ""
    gpu: str = ""
    modelName: str = ""  # noqa: N815 - the exporter's word


class _Result(msgspec.Struct):
    metric: _Metric
    values: list[tuple[float, str]] = []
    value: tuple[float, str] | None = None


class _Data(msgspec.Struct):
    result: list[_Result]


class _Answer(msgspec.Struct):
    data: _Data


class _Scalar(msgspec.Struct):
    result: tuple[float, str]


class _ScalarAnswer(msgspec.Struct):
    data: _Scalar


_ANSWER, _SCALAR = msgspec.json.Decoder(_Answer), msgspec.json.Decoder(_ScalarAnswer)


@dataclass(slots=True)
class Meters:
    """What was kept: a matrix for each quantity that anything answered to."""

    gpus: list[Gpu] = field(default_factory=list)
    models: dict[Gpu, str] = field(default_factory=dict)  # as the driver calls them
    matrices: dict[str, Matrix] = field(default_factory=dict)

    def only(self, hosts: Container[str]) -> Meters:
        """Of these hosts: a Prometheus may keep what belongs to others."""
        kept = [number for number, (host, _) in enumerate(self.gpus) if host in hosts]
        return Meters(
            gpus=[self.gpus[number] for number in kept],
            models={gpu: model for gpu, model in self.models.items() if gpu[0] in hosts},
            matrices={quantity: matrix[kept] for quantity, matrix in self.matrices.items()} if kept else {},
        )

    def get(self, quantity: str) -> Matrix | None:
        return self.matrices.get(quantity)


def read_clock(cluster: ReadOnly) -> float:
    """What the server's clock says."""
    body = cluster.prometheus("/api/v1/query", {"query": "time()"}, most_bytes=_BYTES_MORE)
    try:
        return float(_SCALAR.decode(body).data.result[1])
    except (msgspec.DecodeError, ValueError) as error:
        raise MeterError(f"no answer of a Prometheus: {str(error)[:200]}") from None


class SeriesReader:
    """Asks for a window; `ahead_seconds` is how far the server's clock is ahead of Slurm's."""

    def __init__(
        self,
        cluster: ReadOnly,
        window: Window,
        remarks: Remarks,
        *,
        gpus: int,
        ahead_seconds: float = 0.0,
        match: str = "",
        tell: Callable[[str], None],
    ) -> None:
        self._cluster, self._window, self._remarks = cluster, window, remarks
        self._ahead_seconds, self._tell = ahead_seconds, tell
        self._match = f"{{{match}}}" if match else ""
        self._gpus = gpus or 10_000  # where Slurm knows of none, somebody else may
        self._unanswered = 0
        self._rows: dict[Gpu, int] = {}
        self._models: dict[Gpu, str] = {}

    def read(self, wanted: Sequence[Asking] = DCGM) -> Meters:
        """All that answers; what does not is in the remarks."""
        told: dict[str, dict[Gpu, Matrix]] = {}
        for asking in wanted:
            if self._unanswered >= _MOST_UNANSWERED:
                self._remarks.note("Prometheus was asked no further: it does not answer in time")
                break
            self._tell(f"Prometheus: {asking.quantity}")
            for metric in asking.metrics:
                try:
                    rows = self._range(metric, asking)
                except MeterError as error:
                    self._remarks.note(f"{metric} is left out: {error.message}")
                    continue
                if rows:
                    told[asking.quantity] = rows
                    break
        gpus = sorted(self._rows)
        steps = self._window.steps
        meters = Meters(gpus=gpus, models=self._models)
        for quantity, rows in told.items():
            matrix = np.full((len(gpus), steps), np.nan)
            for number, gpu in enumerate(gpus):
                if gpu in rows:
                    matrix[number] = rows[gpu]
            meters.matrices[quantity] = matrix
        return meters

    def _range(self, metric: str, asking: Asking) -> dict[Gpu, Matrix]:
        step = round(self._window.step_seconds)
        asked = asking.query.format(
            metric=metric + self._match, match=self._match, step=step, fine=max(_FINEST_SECONDS, step // 10)
        )
        query = f"max by (Hostname, instance, gpu, modelName) ({asked})"
        points = self._window.steps + 1
        found: dict[Gpu, Matrix] = {}
        at, most = 0, max(1, _MOST_POINTS // self._gpus)
        while at < points:
            size = min(most, points - at)
            try:
                body = self._ask(query, at, size)
            except (TooMuchError, UnansweredError) as error:
                is_late = isinstance(error, UnansweredError)
                self._unanswered += is_late
                if size == 1 or self._unanswered >= _MOST_UNANSWERED:
                    raise
                most = max(1, size // (4 if is_late else 16))
                continue
            self._unanswered = 0
            self._take(body, found, at, points, asking.worth)
            at += size
        if asking.counts:
            return {gpu: growth_of(row) for gpu, row in found.items()}
        return {gpu: row[1:] for gpu, row in found.items()}

    def _ask(self, query: str, at: int, size: int) -> bytes:
        step = self._window.step_seconds
        first = self._window.begins_at + self._ahead_seconds + at * step
        parameters = {
            "query": query,
            "start": f"{first:.3f}",
            "end": f"{first + (size - 1) * step:.3f}",
            "step": f"{step:.0f}",
        }
        most_bytes = _BYTES_MORE + 2 * self._gpus * (_BYTES_EACH_SERIES + _BYTES_EACH_POINT * size)
        return self._cluster.prometheus("/api/v1/query_range", parameters, most_bytes=most_bytes)

    def _take(self, body: bytes, found: dict[Gpu, Matrix], at: int, points: int, worth: float) -> None:
        try:
            results = _ANSWER.decode(body).data.result
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MeterError(f"no answer of a Prometheus: {str(error)[:200]}") from None
        step, first = self._window.step_seconds, self._window.begins_at + self._ahead_seconds
        strange = 0
        for result in results:
            gpu = _gpu_of(result.metric)
            if gpu is None or (gpu not in self._rows and len(self._rows) >= _MOST_GPUS):
                strange += 1
                continue
            self._rows.setdefault(gpu, len(self._rows))
            if result.metric.modelName:
                self._models[gpu] = result.metric.modelName[:80]
            row = found.get(gpu)
            if row is None:
                row = found[gpu] = np.full(points, np.nan)
            moments = np.array([moment for moment, _ in result.values])
            values = np.array([_number(said) for _, said in result.values])
            columns = np.rint((moments - first) / step).astype(int)
            inside = (columns >= at) & (columns < points)
            row[columns[inside]] = values[inside] * worth
        if strange:
            self._remarks.note(f"{strange:,} series name no node and GPU by Hostname (or instance) and gpu")


def growth_of(row: Matrix) -> Matrix:
    """What a counter grew by in each step; one that begins anew counts from nothing."""
    grown = np.full(len(row) - 1, np.nan)
    known = np.flatnonzero(np.isfinite(row))
    if len(known) > 1:
        before, after, gaps = row[known[:-1]], row[known[1:]], np.diff(known)
        rises = np.where(after >= before, after - before, after) / gaps
        rises[gaps > _LONGEST_GAP_STEPS] = np.nan
        grown[known[0] : known[-1]] = np.repeat(rises, gaps)
    return grown


def _gpu_of(metric: _Metric) -> Gpu | None:
    said = metric.Hostname or metric.instance
    host, _, port = said.rpartition(":")
    host = host if host and port.isdecimal() else said
    if not host or len(host) > 255 or not host.isprintable():
        return None
    if not metric.gpu.isdecimal() or len(metric.gpu) > 4:
        return None
    return host, int(metric.gpu)


def _number(said: str) -> float:
    try:
        value = float(said)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
