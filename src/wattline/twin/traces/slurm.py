"""Slurm accounting as a table: `sacct --parsable2`, with columns for who, when, how long and how many GPUs.

https://slurm.schedmd.com/sacct.html. Lines of job steps (`123.batch`) are no jobs and are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from wattline.twin.traces.flaws import FlawError, count_of, number_of, split_row, time_of
from wattline.twin.traces.gathering import Gathering
from wattline.twin.traces.header import Header

SLURM_COLUMNS = (
    "JobID",
    "Submit",
    "SubmitTime",
    "Elapsed",
    "ElapsedRaw",
    "Start",
    "End",
    "AllocTRES",
    "ReqTRES",
    "AllocGRES",
    "ReqGRES",
    "NNodes",
    "AllocCPUS",
    "NCPUS",
    "Timelimit",
    "TimelimitRaw",
    "Account",
    "State",
)
# Their elapsed time is not how long they run.
NOT_ENDED = frozenset(
    {"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "REQUEUED", "RESIZING", "STOPPED"}
)

_ELAPSED = re.compile(r"(?:(?:(\d{1,7})-)?(\d{1,9}):)?(\d{1,9}):(\d{1,2}(?:\.\d{1,9})?)")
_GRES = re.compile(r"(?:gres[:/])?gpu(?::[^:,()=]+)??(?:[:=](\d{1,9}))?(?:\(.*)?")


def slurm_rows(header: Header, gathering: Gathering) -> Callable[[int, str], None]:
    """How one line is taken."""
    needed: list[tuple[str, ...]] = [
        ("JobID",),
        ("Submit", "SubmitTime"),
        ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES"),
    ]
    if header.find("Elapsed", "ElapsedRaw") is None:
        # Without any of them it is the elapsed time that is asked for.
        needed += [("Start",), ("End",)] if header.find("Start", "End") is not None else [("Elapsed",)]
    header.require(SLURM_COLUMNS, *needed)
    width = header.width
    places = {name.lower(): place for name in SLURM_COLUMNS if (place := header.find(name)) is not None}

    def take_row(line: int, text: str) -> None:
        fields = split_row(text, width, "|")
        row = {name: fields[place].strip() for name, place in places.items()}
        if "." not in row["jobid"]:
            _take_job(line, row, gathering)

    return take_row


def _take_job(line: int, row: dict[str, str], gathering: Gathering) -> None:
    check_ended(row.get("state", ""))
    gathering.take(
        line,
        _moment("Submit", row.get("submit") or row.get("submittime", "")),
        _gpus(row),
        _run_seconds(row),
        row.get("account") or "default",
        name=row["jobid"],
        limit_seconds=_limit_seconds(row),
        cpus=number_of("AllocCPUS", row.get("alloccpus") or row.get("ncpus") or "1"),
    )


def check_ended(state: str) -> None:
    """The first word counts: a job may be `CANCELLED by 1000`."""
    if state.partition(" ")[0].upper() in NOT_ENDED:
        raise FlawError("it had not ended when this was recorded", state)


def _moment(what: str, text: str) -> float:
    """ISO 8601 unless SLURM_TIME_FORMAT=%s was set."""
    return float(text) if text.isdecimal() else time_of(what, text)


def _run_seconds(row: dict[str, str]) -> float:
    if row.get("elapsedraw"):
        return number_of("ElapsedRaw", row["elapsedraw"])
    if row.get("elapsed"):
        return _duration_seconds("Elapsed", row["elapsed"])
    return _moment("End", row.get("end", "")) - _moment("Start", row.get("start", ""))


def _duration_seconds(what: str, text: str) -> float:
    match = _ELAPSED.fullmatch(text)
    if match is None:
        raise FlawError(f"{what} is not a duration, such as 1-02:03:04", text)
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)


def _limit_seconds(row: dict[str, str]) -> float:
    """`UNLIMITED` and `Partition_Limit` are no limits that a user gave."""
    minutes = row.get("timelimitraw", "")
    if minutes.isdecimal():
        return float(minutes) * 60
    text = row.get("timelimit", "")
    return _duration_seconds("Timelimit", text) if _ELAPSED.fullmatch(text) else 0.0


def _gpus(row: dict[str, str]) -> int:
    """What was allocated, else what was asked for; a `--gres` is asked for on each node."""
    for name in ("alloctres", "allocgres", "reqtres", "reqgres"):
        text = row.get(name, "")
        gpus = gpus_in_tres(text) if name.endswith("tres") else _gpus_in_gres(text)
        if gpus and name == "reqgres":
            gpus *= max(1, count_of("NNodes", row.get("nnodes") or "1"))
        if gpus:
            return gpus
    return 0


def gpus_in_tres(text: str) -> int:
    """`cpu=8,gres/gpu=2,gres/gpu:a100=2`: the total, else the sum over the models."""
    counts = dict(part.partition("=")[::2] for part in text.split(","))
    if "gres/gpu" in counts:
        return count_of("TRES", counts["gres/gpu"])
    return sum(count_of("TRES", count) for name, count in counts.items() if name.startswith("gres/gpu:"))


def _gpus_in_gres(text: str) -> int:
    """`gpu:2`, `gpu:a100:2(S:0-1)`, or `gpu` for one."""
    matches = (_GRES.fullmatch(part.strip()) for part in text.split(","))
    return sum(int(match[1] or 1) for match in matches if match)
