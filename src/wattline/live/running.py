"""What a run consists of, as a world needs it: its pipeline, its code and where its data lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wattline.spec import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSource:
    """From a run's documents: everything that starting one of its phases takes."""

    pipeline: Pipeline
    bundle: str  # digest of its source
    folder: Path  # where the pipeline's data lies on this machine
    data_sha256: dict[str, str]  # by path


class Goods(Protocol):
    """Files by digest, in and out: source bundles and what phases leave."""

    def unpack(self, digest: str, folder: Path) -> None:
        """Lay out a stored tree; what is there already and right stays."""
        ...

    def pack(self, folder: Path) -> str:
        """Keep a tree and name it."""
        ...

    def show(self, attempt: str, folder: Path) -> None:
        """Have what an attempt printed where people read it: it has ended, and that is told next."""
        ...

    def source(self, documents: dict[str, str]) -> RunSource:
        """Look up what a run was submitted with."""
        ...
