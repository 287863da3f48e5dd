"""The cluster: what is Slurm asked, by its commands or by slurmrestd? No call is without a timeout."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from wattline.engines.slurm.listing import QueuedJob, SlurmNode
from wattline.engines.slurm.submission import Submission
from wattline.errors import RefusedError, UnavailableError

CALL_SECONDS = 15.0
_MOST_WORDS = 500
# What Slurm of 22.05 to 24.11 says when it is the controller, and not the question, that is at fault.
_DOWN = (
    "Unable to contact slurm controller",
    "Connection refused",
    "connect failure",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Transport endpoint is not connected",
    "authentication error",
    "Munge encode failed",
    "in standby mode",
)


class SlurmDownError(UnavailableError):
    """Slurm did not answer: whether it has done what was asked is not known."""


class SlurmRefusedError(RefusedError):
    """Slurm answered, and said no."""


class Cluster(Protocol):
    """One cluster. Safe to ask from several threads; every call may raise one of the errors above."""

    def queue(self) -> dict[str, QueuedJob]:
        """All jobs that it knows, over or not, by their numbers."""

    def nodes(self, partition: str = "") -> dict[str, SlurmNode]:
        """By host; all of them, unless of one partition."""

    def licenses(self) -> frozenset[str]: ...

    def submit(self, asked: Submission) -> str:
        """The number of the job."""

    def cancel(self, job: str, name: str) -> None:
        """By both: the number may be another job's by now."""

    def find(self, name: str, directory: Path) -> str:
        """The newest job of this name that works in this folder; empty where there is none."""

    def living(self) -> list[tuple[str, str]]:
        """Jobs that wait or run, each with the folder it works in."""

    def cancel_in(self, job: str, directory: Path) -> bool:
        """Cancel it if it works in this folder; whether it did."""


def is_down(said: str) -> bool:
    return any(words in said for words in _DOWN)


def down(asked: str, why: str, or_else: str = "") -> SlurmDownError:
    return SlurmDownError(
        f"Slurm: {asked}: slurmctld does not answer{or_else}: {' '.join(why.split())[:_MOST_WORDS]}",
        hint="see whether slurmctld and munged run: `scontrol ping`",
    )
