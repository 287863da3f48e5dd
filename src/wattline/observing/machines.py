"""Machines: which nodes, GPUs, switches and licenses does Slurm know of?

Read from what `scontrol show` prints, a line for each thing. Text, not JSON: scontrol of 22.05 has none, and
these words have been the same for years.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from wattline.engines.slurm.listing import expand_hosts
from wattline.errors import UnavailableError

_PAIR = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_:/]*)=(\S*)")
_GRES = re.compile(
    r"gpu(?::(?P<model>[^:,()]*[^:,()0-9][^:,()]*))?(?::(?P<count>[0-9]{1,6}))?(?:\([^)]*\))?\Z"
)
_MOST_NODES = 200_000
_UP = frozenset({"IDLE", "MIXED", "ALLOCATED", "COMPLETING", "PLANNED", "RESERVED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One node of the cluster."""

    name: str
    gpus: int
    model: str  # as GRES calls it; empty where it says nothing
    cpus: int
    state: str
    partitions: tuple[str, ...]

    @property
    def is_up(self) -> bool:
        """Whether it takes work as we look: `IDLE+DRAIN` and `IDLE*` do not."""
        return all(word in _UP for word in self.state.split("+"))


@dataclass(frozen=True, slots=True, kw_only=True)
class License:
    name: str
    total: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What matters of `scontrol show config`."""

    cluster: str = ""
    version: str = ""
    accounting: str = ""
    clock_at: float | None = None  # what slurmctld's clock said when it answered


def read_machines(text: str) -> dict[str, Machine]:
    """By name."""
    found: dict[str, Machine] = {}
    for words in _things(text, "NodeName"):
        gpus, model = _gpus_of(words.get("Gres", ""))
        cpus = words.get("CPUTot", "")
        found[words["NodeName"]] = Machine(
            name=words["NodeName"],
            gpus=gpus,
            model=model,
            cpus=int(cpus) if cpus.isdecimal() else 1,
            state=words.get("State", ""),
            partitions=tuple(filter(None, words.get("Partitions", "").split(","))),
        )
        if len(found) > _MOST_NODES:
            raise UnavailableError(f"Slurm: scontrol tells of more than {_MOST_NODES:,} nodes")
    return found


def read_switches(text: str) -> dict[str, str]:
    """The lowest switch above each node, where Slurm was told of a tree."""
    found: dict[str, str] = {}
    for words in _things(text, "SwitchName"):
        if words.get("Level") == "0":
            found |= dict.fromkeys(expand_hosts(words.get("Nodes", "")), words["SwitchName"])
    return found


def read_licenses(text: str) -> list[License]:
    return [
        License(name=words["LicenseName"], total=_count(words.get("Total")), used=_count(words.get("Used")))
        for words in _things(text, "LicenseName")
    ]


def read_partitions(text: str) -> dict[str, int]:
    """How many nodes each has."""
    return {
        words["PartitionName"]: _count(words.get("TotalNodes")) for words in _things(text, "PartitionName")
    }


def read_settings(text: str) -> Settings:
    words = dict(re.findall(r"^([A-Za-z_]+)\s+= (.*)$", text, re.MULTILINE))
    clock = re.search(r"^Configuration data as of ([0-9]{1,11})$", text, re.MULTILINE)
    return Settings(
        cluster=words.get("ClusterName", "").strip(),
        version=words.get("SLURM_VERSION", "").strip(),
        accounting=words.get("AccountingStorageType", "").strip(),
        clock_at=float(clock[1]) if clock else None,
    )


def _things(text: str, key: str) -> Iterator[dict[str, str]]:
    """Without `-o`, what is told of a thing goes on in lines that are indented."""
    joined = re.sub(r"\n[ \t]+", " ", text)
    for line in joined.splitlines():
        words = dict(_PAIR.findall(line))
        if words.get(key):
            yield words


def _gpus_of(gres: str) -> tuple[int, str]:
    """`gpu:h100:8(S:0-1)` → 8 of h100. Of several models on one node only the count is known."""
    matches = [match for part in re.split(r",(?![^(]*\))", gres) if (match := _GRES.match(part.strip()))]
    gpus = sum(int(match["count"] or 1) for match in matches)
    models = {match["model"] or "" for match in matches}
    return gpus, models.pop() if len(models) == 1 else ""


def _count(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
