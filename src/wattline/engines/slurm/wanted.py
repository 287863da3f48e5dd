"""Wanted: how should an attempt be now? A supervisor elsewhere makes it so, however late it looks."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from wattline.engines import leases
from wattline.engines.documents import read_document
from wattline.engines.files import WANTED, write_document


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The whole of `wanted.json`."""

    duty: float = 1.0
    frozen: bool = False
    checkpoint: int = 0
    """How many times its checkpoint signal was asked for."""
    pause: bool = False
    """By signals: save, then finish."""
    stop: bool = False
    end: bool = False
    """At once, without asking it."""
    until: float | None = None
    """By the calendar: it lives no longer. None: as long as Slurm lets it."""
    seconds: float = 0.0
    """How long that was when it was written: whatever a node's calendar says, it lives no longer."""

    def leased(self, until: float | None) -> Wanted:
        """`until` is on the clock of `leases.now`, which other machines do not share."""
        if until is None:
            return self
        seconds = until - leases.now()
        return replace(self, until=time.time() + seconds, seconds=seconds)

    def write(self, directory: Path) -> None:
        write_document(directory, WANTED, asdict(self))

    @staticmethod
    def read(directory: Path) -> Wanted:
        """As it was left; nothing in particular where that cannot be read."""
        return read_document(directory, WANTED, Wanted) or Wanted()
