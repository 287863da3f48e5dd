"""Listings: what do Slurm's tables say? Of what users write only a job's name is asked for, and last.

A slurmctld that is killed forgets what it took in last, and gives the same numbers again: a number alone does
not tell whose job it is. A name may hold anything; a number that is listed twice is believed in neither case.

Text rather than JSON: 22.05 prints four kilobytes of JSON for a job, and its shape changes with every
release; these fields have been the same for years.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from wattline.errors import UnavailableError

_MOST_HOSTS = 100_000
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_TYPED_GPUS = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)")
_NODE_GPUS = re.compile(r"(?:^|,)gpu(?::[^:,()]+)?:(\d+)")
_PART = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*")

QUEUE_FIELDS = ("JobID", "State", "UserName", "NodeList", "NumNodes", "tres-alloc", "Reason", "Name")
NODE_FIELDS = ("NodeList", "StateLong", "Gres", "CPUs")

ALIVE = ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED")
"""States in which a job holds something, or will."""
DOUBTED = "DOUBTED"
"""Not a state of Slurm's: the number is listed twice."""
# States in which nothing of a job runs and nothing ever will.
OVER = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
        *("PREEMPTED", "REVOKED", "SPECIAL_EXIT", "TIMEOUT", "LAUNCH_FAILED", "RECONFIG_FAIL"),
    }
)
# … and of these, those that are nobody's doing who runs there.
TAKEN_AWAY = frozenset({"BOOT_FAIL", "NODE_FAIL", "PREEMPTED", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL"})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """One line of squeue."""

    job: str
    state: str
    user: str
    hosts: tuple[str, ...]
    gpus: int  # all of them together
    reason: str
    name: str

    @property
    def gpus_each(self) -> int:
        """On each of its nodes; of an uneven spread the most it could be."""
        return -(-self.gpus // len(self.hosts)) if self.hosts else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """One line of sinfo."""

    host: str
    state: str
    gpus: int
    cpus: int

    @property
    def is_up(self) -> bool:
        """Whether it takes work: `idle*` does not answer, and a drained one takes nobody new."""
        return not self.state.endswith("*") and self.state.rstrip("~#!%$@^-+").lower() in (
            *("idle", "mixed", "allocated", "completing", "planned", "reserved"),
        )


def format_of(fields: tuple[str, ...]) -> str:
    """For `--Format`: as wide as each field is, and a bar after it."""
    return ",".join(f"{field}:|" for field in fields)


def read_queue(text: str) -> dict[str, QueuedJob]:
    """By job id. An array job that waits is one line for many; none of ours is one."""
    found = {}
    twice = set()
    for job, state, user, hosts, _, tres, reason, name in _rows(text, len(QUEUE_FIELDS)):
        if job in found:
            twice.add(job)
        found[job] = QueuedJob(
            job=job,
            state=state,
            user=user,
            hosts=expand_hosts(hosts),
            gpus=gpus_of(tres),
            reason=reason,
            name=name,
        )
    return {job: replace(line, state=DOUBTED) if job in twice else line for job, line in found.items()}


def read_nodes(text: str) -> dict[str, SlurmNode]:
    """By host; a node in several partitions is listed once for each."""
    found = {}
    for host, state, gres, cpus in _rows(text, len(NODE_FIELDS)):
        found[host] = SlurmNode(
            host=host, state=state, gpus=gpus_in(gres), cpus=int(cpus) if cpus.isdigit() else 0
        )
    return found


def read_folders(text: str) -> Iterator[tuple[str, str]]:
    """Of `JobID:|,WorkDir:|`: who works where."""
    for line in text.splitlines():
        job, _, folder = line.partition("|")
        if job.strip().isdigit():
            yield job.strip(), folder.rstrip("|").strip()


def gpus_in(gres: str) -> int:
    """`gpu:a100:4(S:0-1),gpu:2` → 6."""
    return sum(int(count) for count in _NODE_GPUS.findall(gres))


def expand_hosts(text: str) -> tuple[str, ...]:
    """`n[1-3,07],gpu4` → n1, n2, n3, n07, gpu4."""
    if not text or text in ("(null)", "None assigned", "N/A"):
        return ()
    found: list[str] = []
    for part in _PART.findall(text):
        found += _expand(part) if part else ()
        if len(found) > _MOST_HOSTS:
            raise UnavailableError(f"Slurm: a list of more than {_MOST_HOSTS:,} hosts: {text[:80]}")
    return tuple(found)


def _expand(part: str) -> list[str]:
    before, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, after = rest.partition("]")
    names = [f"{before}{number}" for number in _numbers(inside)]
    return [name + tail for name in names for tail in (_expand(after) if after else [""])]


def _numbers(inside: str) -> Iterator[str]:
    for span in inside.split(","):
        first, dash, last = span.partition("-")
        if not dash:
            yield first
            continue
        if not (first.isdigit() and last.isdigit()) or int(last) - int(first) > _MOST_HOSTS:
            raise UnavailableError(f"Slurm: not a range of hosts: {span[:80]!r}")
        for number in range(int(first), int(last) + 1):
            yield f"{number:0{len(first)}}"


def gpus_of(tres: str) -> int:
    """What was allocated; a typed count comes beside the whole."""
    whole = _GPUS.search(tres)
    if whole is not None:
        return int(whole[1])
    return sum(int(count) for count in _TYPED_GPUS.findall(tres))


def _rows(text: str, width: int) -> Iterator[list[str]]:
    for line in text.splitlines():
        fields = [field.strip() for field in line.removesuffix("|").split("|", width - 1)]
        if len(fields) == width and fields[0]:
            yield fields
