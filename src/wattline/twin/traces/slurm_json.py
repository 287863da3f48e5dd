"""Slurm accounting as a document: `sacct --json`.

Versions of Slurm differ in how they write numbers that may be unset, and in whether a state is a word or a
list of them; both are read. Jobs are told apart by their place in the list, not by a line.
"""

from __future__ import annotations

import msgspec

from wattline.errors import DocumentError, Problem
from wattline.twin.traces.flaws import FlawError
from wattline.twin.traces.gathering import Gathering
from wattline.twin.traces.slurm import check_ended

# It is read as a whole, at some kilobytes a job: for more there is the table.
LARGEST_JSON_BYTES = 256 << 20


class _Settable(msgspec.Struct):
    number: float = 0.0
    set: bool = True
    infinite: bool = False


class _Time(msgspec.Struct):
    submission: float | _Settable
    elapsed: float | _Settable
    limit: float | _Settable | None = None  # minutes


class _Counted(msgspec.Struct):
    type: str
    name: str | None = ""
    count: float | None = 0


class _Tres(msgspec.Struct):
    allocated: list[_Counted] = []
    requested: list[_Counted] = []


class _State(msgspec.Struct):
    current: str | list[str] = ""


class _Job(msgspec.Struct):
    job_id: int
    time: _Time
    tres: _Tres
    state: _State = msgspec.field(default_factory=_State)
    account: str | None = None


class _Document(msgspec.Struct):
    jobs: list[msgspec.Raw]


_decode_document = msgspec.json.Decoder(_Document).decode
_decode_job = msgspec.json.Decoder(_Job).decode


def take_slurm_json(raw: bytes, file: str, gathering: Gathering) -> None:
    """Take every job of the document; a job of another shape is refused by itself."""
    try:
        document = _decode_document(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DocumentError(
            Problem(file=file, message=f"this is not what sacct --json writes: {error}")
        ) from error
    for number, job in enumerate(document.jobs, 1):
        try:
            _take_job(number, job, gathering)
        except FlawError as flaw:
            gathering.refuse(number, flaw)


def _take_job(number: int, raw: msgspec.Raw, gathering: Gathering) -> None:
    try:
        job = _decode_job(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FlawError("the job is not what sacct --json writes", error) from error
    state = job.state.current
    for word in [state] if isinstance(state, str) else state:
        check_ended(word)
    given = job.tres.allocated or job.tres.requested
    gathering.take(
        number,
        _number(job.time.submission),
        _gpus(job.tres.allocated) or _gpus(job.tres.requested),
        _number(job.time.elapsed),
        job.account or "default",
        name=str(job.job_id),
        limit_seconds=60 * _number(job.time.limit),
        cpus=sum(counted.count or 0 for counted in given if counted.type == "cpu"),
    )


def _number(value: float | _Settable | None) -> float:
    """0 is what nobody set."""
    if isinstance(value, _Settable):
        return value.number if value.set and not value.infinite else 0.0
    return value or 0.0


def _gpus(counts: list[_Counted]) -> int:
    """The total, else the sum over the models."""
    gres = [(counted.name or "", counted.count or 0) for counted in counts if counted.type == "gres"]
    total = sum(count for name, count in gres if name == "gpu")
    return int(total or sum(count for name, count in gres if name.startswith("gpu:")))
