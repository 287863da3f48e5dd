"""Reading: what does a cluster tell of itself, live or from files that were saved there?

Each question may go unanswered: what is missing is said, and the rest goes on.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from wattline.errors import UnavailableError, WattlineError
from wattline.observing.accounting import FIELDS, Accounts
from wattline.observing.asking import ReadOnly
from wattline.observing.machines import (
    License,
    Machine,
    Settings,
    read_licenses,
    read_machines,
    read_partitions,
    read_settings,
    read_switches,
)
from wattline.observing.remarks import Remarks
from wattline.observing.window import Window
from wattline.twin.traces.lines import open_lines, read_whole

_PIECE_SECONDS = 86400.0
_LEAST_PIECE_SECONDS = 900.0
# What SlurmClient says of an answer that is too large, or that takes too long to make.
_TOO_MUCH = ("printed more than", "no answer within")
_LARGEST_DUMP_BYTES = 256 << 20


@dataclass(slots=True)
class Cluster:
    """What Slurm says."""

    settings: Settings = field(default_factory=Settings)
    machines: dict[str, Machine] = field(default_factory=dict)
    switches: dict[str, str] = field(default_factory=dict)
    licenses: list[License] = field(default_factory=list)
    partitions: dict[str, int] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)  # by job, what it waits for now


def read_cluster(ask: ReadOnly, remarks: Remarks) -> Cluster:
    """Raises only where not even nodes are told."""
    cluster = Cluster(machines=read_machines(ask.slurm("scontrol", "-o", "show", "node")))

    def hear(*command: str) -> str:
        try:
            return ask.slurm(*command)
        except WattlineError as error:
            remarks.note(f"{shlex.join(command)}: {error.message}")
            return ""

    cluster.settings = read_settings(hear("scontrol", "show", "config"))
    cluster.switches = read_switches(hear("scontrol", "show", "topology"))
    cluster.partitions = read_partitions(hear("scontrol", "-o", "show", "partition"))
    cluster.licenses = read_licenses(hear("scontrol", "-o", "show", "licenses"))
    for line in hear("squeue", "-h", "-a", "-t", "PENDING", "-o", "%A|%r").splitlines():
        job, bar, reason = line.strip().partition("|")
        if bar and reason != "None":
            cluster.pending[job] = reason[:60]
    return cluster


def read_dump(path: Path) -> Cluster:
    """What `scontrol show node`, `show topology`, `show config` … printed, all in one file."""
    text = read_whole(path, _LARGEST_DUMP_BYTES).decode(errors="replace")
    machines = read_machines(text)
    if not machines:
        raise UnavailableError(
            f"{path}: there is no NodeName= in it",
            hint="save it with: (scontrol show config; scontrol -o show node; scontrol show topology) > FILE",
        )
    return Cluster(
        settings=read_settings(text),
        machines=machines,
        switches=read_switches(text),
        licenses=read_licenses(text),
        partitions=read_partitions(text),
    )


def read_saved_accounting(path: Path, remarks: Remarks) -> Accounts:
    accounts = Accounts()
    with open_lines(path) as lines:
        accounts.read(lines, str(path))
    if not accounts.says_zone:
        remarks.note(f"{path}: times have no zone and are taken as UTC; SLURM_TIME_FORMAT=%s would say")
    _note_flaws(accounts, remarks)
    return accounts


def read_accounting(
    ask: ReadOnly, window: Window, remarks: Remarks, tell: Callable[[str], None]
) -> Accounts | None:
    """A day at a time, less where that is too much to hold; None where nobody keeps accounts."""
    accounts = Accounts()
    at, piece = window.begins_at, _PIECE_SECONDS
    while at < window.ends_at:
        until = min(at + piece, window.ends_at)
        tell(f"sacct: {_iso(at)}, {len(accounts.spells):,} rows so far")
        try:
            told = ask.slurm(*_sacct(at, until))
        except WattlineError as error:
            is_too_much = any(words in error.message for words in _TOO_MUCH)
            if is_too_much and piece > _LEAST_PIECE_SECONDS:
                piece /= 4
                continue
            remarks.note(f"accounting from {_iso(at)} on is missing: {_of_database(error.message)}")
            break
        accounts.read(told.splitlines(), "sacct")
        at = until
    accounts.covered = (at - window.begins_at) / window.seconds
    _note_flaws(accounts, remarks)
    return accounts if accounts.covered else None


def _sacct(begins_at: float, ends_at: float) -> Iterable[str]:
    span = ("-S", _iso(begins_at), "-E", _iso(ends_at))
    return ("sacct", "-a", "-D", "-X", "-P", "--noconvert", *span, "-o", ",".join(FIELDS))


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _of_database(message: str) -> str:
    """Who does not answer sacct is slurmdbd, whatever it is taken for elsewhere."""
    return message.replace("slurmctld does not answer", "slurmdbd does not answer")


def _note_flaws(accounts: Accounts, remarks: Remarks) -> None:
    for rule, count in accounts.flaws.most_common():
        rows = "1 row of sacct is" if count == 1 else f"{count:,} rows of sacct are"
        remarks.note(f"{rows} left out: {rule} (first: {accounts.first_flawed[rule]})")
