"""What is known of a run when it has ended? Everything its manifest says, before it is written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from wattline.release.gates import GateResult
from wattline.release.index import Sha256, Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A document or file by name, with the hash of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source bundle, and the commit it was made from if it came from Git."""

    digest: str
    commit: str | None
    dirty: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataUsed:
    name: str
    path: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamsUsed:
    path: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FacilityUsed:
    name: str
    sha256: str
    emulated: bool  # its watts and degrees came from a model, not from meters


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRange:
    """The stretch of the journal that holds every decision about the run."""

    first_seq: int
    last_seq: int
    count: int
    head: str  # hash of the record at `last_seq`, in hexadecimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    attempt: int
    epoch: int
    site: str
    nodes: tuple[str, ...]
    outcome: str
    started_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRun:
    name: str
    attempts: tuple[Attempt, ...]
    outputs: str | None  # digest
    approximate: bool = False
    aside: bool = False  # nothing that would be released rests on it


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointUsed:
    """The checkpoint the result was made from; `digest` is its seal (BLAKE3, hexadecimal)."""

    digest: str
    step: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that the run exists to make."""

    path: str
    sha256: Sha256
    size_bytes: Size


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAsked:
    """What the pipeline says of its release."""

    name: str
    to: str
    approval: Literal["required", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run from its documents to its artifacts. What could not be known is None, never zero."""

    run_id: str
    pipeline: Pinned
    model: str
    owner: str
    project: str
    intended_use: str
    source: Source
    image: str | None
    data: tuple[DataUsed, ...]
    params: ParamsUsed | None
    policy: Pinned
    facility: FacilityUsed
    decisions: DecisionRange | None
    phases: tuple[PhaseRun, ...]
    checkpoint: CheckpointUsed | None
    artifacts: tuple[Artifact, ...]
    logs: tuple[Pinned, ...]
    gates: tuple[GateResult, ...]
    metrics: Mapping[str, float]
    release: ReleaseAsked | None
    cost_usd: float | None
    energy_kwh: float | None
    carbon_kg: float | None
    started_at: float
    ended_at: float
    wattline_version: str
