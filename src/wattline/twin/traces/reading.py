"""Which format is this trace in, and who reads it?

By what the file says rather than by its name: its first bytes, its first line, the names of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Literal

from wattline.errors import DocumentError, Problem
from wattline.spec.tree import printable
from wattline.store import Journal
from wattline.twin.traces.flaws import FlawError
from wattline.twin.traces.gathering import Gathering
from wattline.twin.traces.gavel import GAVEL_COLUMNS, gavel_rows
from wattline.twin.traces.header import Header
from wattline.twin.traces.journal import find_journal, take_journal, take_records
from wattline.twin.traces.lines import open_lines, read_whole, shown
from wattline.twin.traces.philly import PHILLY_COLUMNS, philly_rows
from wattline.twin.traces.pollux import POLLUX_COLUMNS, pollux_rows
from wattline.twin.traces.settling import settle
from wattline.twin.traces.slurm import SLURM_COLUMNS, slurm_rows
from wattline.twin.traces.slurm_json import LARGEST_JSON_BYTES, take_slurm_json
from wattline.twin.traces.swf import is_swf_row, swf_rows
from wattline.twin.traces.trace import Trace, Window

KNOWN = (
    f"Philly CSV ({','.join(PHILLY_COLUMNS)}), Pollux CSV ({','.join(POLLUX_COLUMNS)}), Gavel "
    "(7 columns between tabs), Standard Workload Format (.swf), Slurm accounting (sacct --parsable2 or "
    "--json), a Wattline journal (wattline.db); plain or gzip"
)
Format = Literal["philly", "pollux", "gavel", "swf", "slurm", "slurm-json"]
_TABLES: tuple[tuple[Format, str, tuple[str, ...]], ...] = (
    ("philly", ",", PHILLY_COLUMNS),
    ("pollux", ",", POLLUX_COLUMNS),
    ("slurm", "|", SLURM_COLUMNS),
)
_ENOUGH_NAMES = 2  # to know what a table wants to be, so that what it lacks can be named


def read_trace(
    source: str | Path,
    *,
    arrival_scale: float = 1.0,
    skip_days: float = 0.0,
    most_jobs: int | None = None,
) -> Trace:
    """Read a trace of any known format: a file, plain or gzip, or the state folder of a control plane.

    Raises UsageError for a window that shows nothing, DocumentError for a file that is no trace or has no
    usable job, and UnavailableError for one that cannot be read or lacks the tables that belong to it.
    """
    window = Window(arrival_scale=arrival_scale, skip_days=skip_days, most_jobs=most_jobs)
    path = Path(source)
    if (database := find_journal(path)) is not None:
        gathering = Gathering("journal")
        take_journal(database, gathering)
    else:
        gathering = _read_file(path)
    return settle(gathering, window, file=shown(path), name=_name_of(path))


def trace_of(journal: Journal, name: str) -> Trace:
    """The jobs of a journal that is open already."""
    gathering = Gathering("journal")
    take_records(journal, gathering)
    return settle(gathering, Window(), file=name, name=name)


def _name_of(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return printable(name.rpartition(".")[0] or name or str(path))


def _read_file(path: Path) -> Gathering:
    with open_lines(path) as texts:
        lines = enumerate(texts, 1)
        line, first = next(((line, text) for line, text in lines if text.strip()), (0, ""))
        if not line:
            raise DocumentError(Problem(file=shown(path), message="the file is empty"))
        format_ = _recognise(first, path, line)
        if format_ != "slurm-json":
            return _read_table(format_, path, line, first, lines)
    gathering = Gathering("slurm")
    take_slurm_json(read_whole(path, LARGEST_JSON_BYTES), shown(path), gathering)
    return gathering


def _recognise(first: str, path: Path, line: int) -> Format:
    if first.startswith(";") or path.name.removesuffix(".gz").endswith(".swf") or is_swf_row(first):
        return "swf"
    if first.lstrip().startswith("{"):
        return "slurm-json"
    if first.count("\t") == GAVEL_COLUMNS - 1:
        return "gavel"
    matches: list[tuple[int, Format]] = []
    for format_, separator, columns in _TABLES:
        names = Header(shown(path), line, first, separator).names
        matches.append((len({column.lower() for column in columns} & set(names)), format_))
    best, format_ = max(matches, key=lambda match: match[0])
    if best >= _ENOUGH_NAMES:
        return format_
    raise DocumentError(
        Problem(
            file=shown(path),
            line=line,
            column=1,
            message="this is no trace of a known format",
            value=repr(printable(first)),
            allowed=KNOWN,
        )
    )


def _read_table(
    format_: Literal["philly", "pollux", "gavel", "swf", "slurm"],
    path: Path,
    line: int,
    first: str,
    lines: Iterator[tuple[int, str]],
) -> Gathering:
    gathering = Gathering(format_)
    header = Header(shown(path), line, first, "|" if format_ == "slurm" else ",")
    if format_ == "philly":
        take_row = philly_rows(header, gathering)
    elif format_ == "pollux":
        take_row = pollux_rows(header, gathering, path)
    elif format_ == "slurm":
        take_row = slurm_rows(header, gathering)
    else:
        lines = chain([(line, first)], lines)
        take_row = swf_rows(gathering) if format_ == "swf" else gavel_rows(gathering, path)
    _take_rows(take_row, lines, gathering)
    return gathering


def _take_rows(
    take_row: Callable[[int, str], None], lines: Iterable[tuple[int, str]], gathering: Gathering
) -> None:
    for line, text in lines:
        if not text or text.isspace():
            continue
        try:
            take_row(line, text)
        except FlawError as flaw:
            gathering.refuse(line, flaw)
