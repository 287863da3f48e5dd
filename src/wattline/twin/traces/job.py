"""What is one job of a trace, and how are a million of them held?

As rows of a table: a job takes some 50 bytes until somebody looks at it, a quarter of what an object with its
numbers and its name would.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import msgspec
import numpy as np
from numpy.typing import NDArray

ROW = np.dtype(
    [
        ("arrives_seconds", "f8"),
        ("work_seconds", "f8"),
        ("limit_seconds", "f8"),  # NaN: none
        ("cpus", "f8"),
        ("gpus", "i4"),
        ("batch_size", "i4"),  # 0: none
        ("line", "i4"),
        ("project", "i4"),  # which of the words
        ("application", "i4"),  # which of the words
    ]
)
PACKED = struct.Struct("=ddddiiiii")
_AT_ONCE = 4096


class TraceJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was recorded."""

    name: str  # unique in the trace; where the format has no names: its kind and its line
    arrives_seconds: float  # since the first arrival that is kept
    gpus: int
    work_seconds: float  # how long it runs undisturbed, on as many GPUs as it asks for
    project: str = "default"
    application: str = ""  # which model, where the trace says so
    batch_size: int | None = None
    limit_seconds: float | None = None  # what its user said it would take at most
    cpus: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The same fields as numbers, a ROW each."""

    rows: NDArray[np.void]
    words: Sequence[str]
    names: Sequence[str] | None  # of each row; None: kind and line are the name
    kind: str


class Jobs(Sequence[TraceJob]):
    """Jobs in order of arrival, each made from its row when asked for."""

    __slots__ = ("_table",)

    def __init__(self, table: Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table.rows)

    @overload
    def __getitem__(self, index: int) -> TraceJob: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TraceJob, ...]: ...
    def __getitem__(self, index: int | slice) -> TraceJob | tuple[TraceJob, ...]:
        if isinstance(index, slice):
            return tuple(self._make(index))
        number = range(len(self))[index]
        return next(self._make(slice(number, number + 1)))

    def __iter__(self) -> Iterator[TraceJob]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self._make(slice(first, first + _AT_ONCE))

    def _make(self, which: slice) -> Iterator[TraceJob]:
        table = self._table
        words = table.words
        names = iter(() if table.names is None else table.names[which])
        rows = table.rows[which].tolist()
        for arrives, work, limit, cpus, gpus, batch_size, line, project, application in rows:
            yield TraceJob(
                name=f"{table.kind}-{line}" if table.names is None else next(names),
                arrives_seconds=arrives,
                gpus=gpus,
                work_seconds=work,
                project=words[project],
                application=words[application],
                batch_size=batch_size or None,
                limit_seconds=None if math.isnan(limit) else limit,
                cpus=cpus,
            )
