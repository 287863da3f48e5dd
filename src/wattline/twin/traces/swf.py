"""Standard Workload Format: eighteen numbers a line, -1 for what is not known, comments after `;`.

https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. Its machines have processors; here each is a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from wattline.twin.traces.flaws import FlawError, count_of, number_of
from wattline.twin.traces.gathering import Gathering

COLUMNS = 18
# Counted from one, as the format's page does.
_JOB, _SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _LIMIT = 1, 2, 4, 5, 8, 9
_SHARERS = (("group", 13), ("queue", 15), ("user", 12))


def is_swf_row(text: str) -> bool:
    """Does a line without any header look like this format?"""
    fields = text.split()
    try:
        return len(fields) == COLUMNS and all(math.isfinite(float(field)) for field in fields)
    except ValueError:
        return False


def swf_rows(gathering: Gathering) -> Callable[[int, str], None]:
    """How one line is taken."""

    def take_row(line: int, text: str) -> None:
        fields = text.partition(";")[0].split()
        if not fields:
            return
        if len(fields) != COLUMNS:
            raise FlawError("wrong number of columns", f"{len(fields)} instead of {COLUMNS}")
        fields.insert(0, "")
        run_seconds = number_of("run time", fields[_RUN])
        if run_seconds == -1:
            raise FlawError("the run time is not known", fields[_RUN])
        gathering.take(
            line,
            number_of("submit time", fields[_SUBMIT]),
            _processors(fields),
            run_seconds,
            _project(fields),
            name=fields[_JOB],
            limit_seconds=number_of("requested time", fields[_LIMIT]),
        )

    return take_row


def _processors(fields: list[str]) -> int:
    requested = count_of("requested processors", fields[_REQUESTED])
    return requested if requested > 0 else count_of("allocated processors", fields[_ALLOCATED])


def _project(fields: list[str]) -> str:
    """Who shares the machine: groups where they are known, else queues, else users."""
    for what, column in _SHARERS:
        if not fields[column].startswith("-"):
            return f"{what}-{fields[column]}"
    return "default"
