"""Which part of what was read is replayed, and when does each job of it arrive?"""

from __future__ import annotations

import numpy as np

from wattline.errors import DocumentError, Problem, UsageError
from wattline.twin.traces.gathering import MOST_SECONDS, Gathering
from wattline.twin.traces.job import Jobs
from wattline.twin.traces.trace import Trace, Window

_DAY_SECONDS = 86400.0
_MOST_SHOWN = 10


def settle(gathering: Gathering, window: Window, *, file: str, name: str) -> Trace:
    """The jobs that a window shows, in order of arrival; days count from the first good job of the file."""
    if not len(gathering):
        raise DocumentError(*_why_nothing(gathering, file))
    arrivals = gathering.arrivals
    order = np.argsort(arrivals, kind="stable")
    skipped = int(np.searchsorted(arrivals[order], arrivals[order[0]] + window.skip_days * _DAY_SECONDS))
    kept = order[skipped:][: window.most_jobs]
    if not len(kept):
        days = float(arrivals[order[-1]] - arrivals[order[0]]) / _DAY_SECONDS
        raise UsageError(
            f"{file}: no job arrives after the first {window.skip_days:g} days; the last one does after "
            f"{days:.2f}",
            hint="skip fewer days",
        )
    arrives = arrivals[kept] - arrivals[kept[0]]
    if arrives[-1] > MOST_SECONDS * window.arrival_scale:
        raise UsageError(
            f"arrival scale: {window.arrival_scale} moves arrivals beyond all times",
            hint="2 lets jobs arrive twice as fast, 0.5 half as fast",
        )
    return Trace(
        name=name,
        kind=gathering.kind,
        jobs=Jobs(gathering.table(kept, arrives / window.arrival_scale)),
        refused=tuple(gathering.refused),
        refused_by_rule=dict(gathering.refused_by_rule),
        unsorted=int(np.count_nonzero(arrivals < np.maximum.accumulate(arrivals))),
        skipped=skipped,
        left_out=len(order) - skipped - len(kept),
    )


def _why_nothing(gathering: Gathering, file: str) -> list[Problem]:
    if not gathering.refused:
        return [Problem(file=file, message=f"this {gathering.kind} trace has no jobs")]
    counts = ", ".join(f"{count:,} × {rule}" for rule, count in gathering.refused_by_rule.most_common())
    return [
        Problem(file=file, message=f"no job of this {gathering.kind} trace can be used: {counts}"),
        *(
            Problem(file=file, line=flawed.line, column=1, message=flawed.rule, value=flawed.value)
            for flawed in gathering.refused[:_MOST_SHOWN]
        ),
    ]
