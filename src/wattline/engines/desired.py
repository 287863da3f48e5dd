"""Desired: what should the training runtime do now?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from wattline.engines.documents import read_document
from wattline.engines.files import DESIRED, write_document


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """The whole of `desired.json`; the newest replaces the last: the training compares, it does not queue."""

    serial: int = 0
    in_flight: float = 1.0
    """Share of the batch in flight, above 0 and up to 1."""
    checkpoint: int = 0
    """How many checkpoints were asked for so far."""
    pause: bool = False
    """Save a checkpoint and exit."""

    def shrunk(self, in_flight: float) -> Desired:
        return replace(self, serial=self.serial + 1, in_flight=in_flight)

    def with_checkpoint(self) -> Desired:
        return replace(self, serial=self.serial + 1, checkpoint=self.checkpoint + 1)

    def paused(self) -> Desired:
        return replace(self, serial=self.serial + 1, pause=True)

    def write(self, directory: Path) -> None:
        write_document(directory, DESIRED, asdict(self))

    @staticmethod
    def read(directory: Path) -> Desired:
        """As it was left; nothing in particular where that cannot be read."""
        return read_document(directory, DESIRED, Desired) or Desired()
