"""Gavel: a job type, how it is called, how many steps it takes, when it arrives, on how many GPUs.

Seven columns between tabs, no header: type, command, name of the steps argument, whether it needs data, total
steps, arrival in seconds, scale factor. How long the steps take is in a table of steps per second beside the
trace, measured for each type, scale factor and GPU model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from wattline.decoding import decode_json
from wattline.errors import DocumentError, Problem, UnavailableError
from wattline.twin.traces.flaws import FlawError, check_gpus, count_of, number_of, split_row
from wattline.twin.traces.gathering import Gathering
from wattline.twin.traces.lines import read_whole, shown

GAVEL_COLUMNS = 7
THROUGHPUTS = ("gavel-throughputs.json.gz", "gavel-throughputs.json")
GPU_MODEL = "v100"
LARGEST_TABLE_BYTES = 64 << 20

_BATCH = re.compile(r"(.+) \(batch size (\d{1,9})\)")
# By "('ResNet-18 (batch size 16)', 1)"; under "null" it has the GPUs for itself.
_Table = dict[str, dict[str, dict[str, Any]]]


def gavel_rows(gathering: Gathering, trace: Path) -> Callable[[int, str], None]:
    """How one line is taken."""
    steps_per_second = _read_throughputs(trace)

    def take_row(line: int, text: str) -> None:
        fields = [field.strip() for field in split_row(text, GAVEL_COLUMNS, "\t")]
        job_type = fields[0]
        steps = number_of("total steps", fields[4])
        gpus = count_of("scale factor", fields[6])
        application, batch_size = _model_of(job_type)
        gathering.take(
            line,
            number_of("arrival time", fields[5]),
            gpus,
            steps / _rate(steps_per_second, job_type, gpus),
            application=application,
            batch_size=batch_size,
        )

    return take_row


def _model_of(job_type: str) -> tuple[str, int]:
    match = _BATCH.fullmatch(job_type)
    return (match[1], int(match[2])) if match else (job_type, 0)


def _rate(steps_per_second: Mapping[str, float], job_type: str, gpus: int) -> float:
    check_gpus(gpus)
    rate = steps_per_second.get(f"('{job_type}', {gpus})")
    if rate is None:
        raise FlawError(
            f"no throughput on {GPU_MODEL.upper()} for this job type and scale factor", f"{job_type}, {gpus}"
        )
    return rate


def _read_throughputs(trace: Path) -> dict[str, float]:
    """Steps per second of each type and scale factor that runs at all."""
    path = next((trace.parent / name for name in THROUGHPUTS if (trace.parent / name).is_file()), None)
    if path is None:
        raise UnavailableError(
            f"{shown(trace)}: jobs of a Gavel trace have steps and no run time; the table of steps per "
            f"second, {' or '.join(THROUGHPUTS)}, is not beside it",
            hint="it is simulation_throughputs.json of stanford-futuredata/gavel",
        )
    try:
        models = decode_json(read_whole(path, LARGEST_TABLE_BYTES), _Table)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise DocumentError(
            Problem(file=shown(path), message=f"this is not a table of throughputs: {error}")
        ) from error
    if GPU_MODEL not in models:
        raise DocumentError(
            Problem(file=shown(path), field=GPU_MODEL, message="this GPU model is missing from the table")
        )
    alone = {key: entry.get("null") for key, entry in models[GPU_MODEL].items()}
    return {key: float(rate) for key, rate in alone.items() if isinstance(rate, int | float) and rate > 0}
