"""Accounting: what do the rows of `sacct` say of each time a job waited and ran?

With `--duplicates` a job that was requeued has a row for every time it ran. Odd rows are counted by the rule
they break and named; none is dropped unseen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from wattline.engines.slurm.listing import expand_hosts
from wattline.errors import UnavailableError
from wattline.twin.traces.flaws import FlawError, number_of, split_row, time_of
from wattline.twin.traces.gathering import MOST_GPUS, MOST_SECONDS
from wattline.twin.traces.header import Header
from wattline.twin.traces.slurm import gpus_in_tres

FIELDS = (
    *("JobIDRaw", "JobID", "Account", "Partition", "State", "Reason", "ExitCode", "Submit", "Eligible"),
    *("Start", "End", "TimelimitRaw", "NodeList", "AllocTRES", "ReqTRES", "NCPUS"),
)
_NEEDED = (("JobID",), ("State",), ("Submit",), ("Start",), ("End",), ("AllocTRES", "ReqTRES"))
_NO_TIME = frozenset({"", "unknown", "none", "n/a", "0"})
_MOST_TASKS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """One time that a job waited, and ran if it came to that."""

    job: str
    account: str
    partition: str
    state: str
    reason: str  # what it waited for last, where Slurm kept it
    exit_code: str = ""  # code:signal
    submitted_at: float
    eligible_at: float  # from here on it could have run
    started_at: float | None
    ended_at: float | None  # None: still waits, or still runs
    gpus: int
    hosts: tuple[str, ...]
    cpus: float = 1.0
    limit_minutes: float | None = None
    tasks: int = 1  # of an array that waits: how many the row stands for

    @property
    def all_gpus(self) -> int:
        return self.gpus * self.tasks


@dataclass(slots=True)
class Accounts:
    """The spells of jobs that asked for GPUs, and an account of every other row."""

    spells: dict[tuple[str, float], Spell] = field(default_factory=dict)  # by job and when it was submitted
    without_gpus: int = 0
    flaws: Counter[str] = field(default_factory=Counter)
    first_flawed: dict[str, str] = field(default_factory=dict)
    covered: float | None = None  # of the window; None: a file does not say what it leaves out
    newest_at: float = 0.0  # the last submission, start or end that any row tells of
    says_zone: bool = True  # False: times were written without one, and are taken as UTC

    def read(self, lines: Iterable[str], source: str) -> None:
        """Take rows of `sacct --parsable2`, below their names; one that is known already counts once."""
        rows = enumerate(lines, 1)
        line, first = next(((line, text) for line, text in rows if text.strip()), (0, ""))
        if not line:
            raise UnavailableError(f"{source}: there is not even a line of names", hint=HOW_TO_SAVE)
        header = Header(source, line, first, "|")
        header.require(FIELDS, *_NEEDED)
        width = header.width
        places = {name: place for name in FIELDS if (place := header.find(name)) is not None}
        for _, text in rows:
            if not text.strip():
                continue
            try:
                fields = split_row(text, width, "|")
                self._take({name: fields[place].strip() for name, place in places.items()})
            except (FlawError, UnavailableError) as flaw:
                rule = flaw.rule if isinstance(flaw, FlawError) else "its nodes cannot be read"
                self.flaws[rule] += 1
                self.first_flawed.setdefault(rule, text[:80])

    def _take(self, row: dict[str, str]) -> None:
        if "." in row["JobID"]:
            return  # a step of a job
        spell = self._spell(row)
        if spell.gpus == 0:
            self.without_gpus += 1
            return
        self.spells[spell.job, spell.submitted_at] = spell

    def _spell(self, row: dict[str, str]) -> Spell:
        submitted_at = self._moment("Submit", row["Submit"])
        if submitted_at is None:
            raise FlawError("Submit is not a time", row["Submit"])
        started_at, ended_at = self._moment("Start", row["Start"]), self._moment("End", row["End"])
        eligible_at = self._moment("Eligible", row.get("Eligible", "")) or submitted_at
        if started_at is not None and started_at < submitted_at - 1.0:
            raise FlawError("it started before it was submitted", row["Start"])
        if started_at is not None and ended_at is not None and ended_at < started_at:
            raise FlawError("it ended before it started", row["End"])
        self.newest_at = max(self.newest_at, submitted_at, started_at or 0.0, ended_at or 0.0)
        gpus = gpus_in_tres(row.get("AllocTRES", "")) or gpus_in_tres(row.get("ReqTRES", ""))
        if not 0 <= gpus <= MOST_GPUS:
            raise FlawError("more GPUs than any cluster has", gpus)
        limit = row.get("TimelimitRaw", "")
        return Spell(
            job=row.get("JobIDRaw") or row["JobID"],
            account=row.get("Account", "") or "default",
            partition=row.get("Partition", ""),
            state=row["State"].partition(" ")[0].upper(),
            reason=_reason(row.get("Reason", "")),
            exit_code=row.get("ExitCode", "")[:12],
            submitted_at=submitted_at,
            eligible_at=max(submitted_at, eligible_at),
            started_at=started_at,
            ended_at=ended_at,
            gpus=gpus,
            hosts=expand_hosts(row.get("NodeList", "")),
            cpus=number_of("NCPUS", row.get("NCPUS", "") or "1"),
            limit_minutes=float(limit) if limit.isdecimal() else None,
            tasks=_tasks_in(row["JobID"]),
        )

    def _moment(self, what: str, text: str) -> float | None:
        if text.lower() in _NO_TIME:
            return None
        if text.isdecimal():
            at = float(text)
        else:
            at = time_of(what, text)
            self.says_zone = self.says_zone and bool(re.search(r"(?:Z|[+-]\d\d:?\d\d)\Z", text))
        if not 0 < at <= MOST_SECONDS:
            raise FlawError(f"{what} is beyond all times", text)
        return at


HOW_TO_SAVE = "save it with: SLURM_TIME_FORMAT=%s sacct -a -D -X -P --noconvert -S now-7days -o " + ",".join(
    FIELDS
)


def _reason(text: str) -> str:
    return "" if text in ("None", "N/A", "") else text[:60]


def _tasks_in(job: str) -> int:
    """`40_[1-10,20%4]` stands for eleven tasks that wait."""
    inside = re.search(r"\[([0-9,:%-]+)\]", job)
    if inside is None:
        return 1
    tasks = 0
    for part in inside[1].partition("%")[0].split(","):
        first, _, rest = part.partition("-")
        last, _, stride = rest.partition(":")
        if last.isdecimal() and first.isdecimal() and int(last) >= int(first):
            tasks += (int(last) - int(first)) // max(1, int(stride or 1)) + 1
        else:
            tasks += 1
    return min(tasks, _MOST_TASKS)
