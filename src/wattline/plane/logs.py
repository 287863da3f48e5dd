"""What did an attempt print?"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from pathlib import Path

from wattline.errors import UsageError
from wattline.live.printed import read_log
from wattline.plane.finding import View
from wattline.plane.told import LogTold
from wattline.state import Job

_CHUNK_BYTES = 1 << 16


@dataclass(slots=True)
class Log:
    """The captured output of one attempt, and how much of it was read."""

    job: str
    attempt: int
    path: Path
    read_bytes: int = 0
    decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")(errors="replace")
    )

    @property
    def title(self) -> str:
        return f"{self.job}, attempt {self.attempt}"

    def read(self) -> bytes:
        """The next piece; empty where there is none yet."""
        data = read_log(self.path, self.read_bytes, _CHUNK_BYTES)
        self.read_bytes += len(data)
        return data


def logs_of(view: View, jobs: tuple[Job, ...], attempt: int | None) -> list[Log]:
    """The newest attempt of each job that has one, or the one that is named."""
    found = []
    for job in jobs:
        if attempt is not None and not 1 <= attempt <= job.attempt:
            raise UsageError(
                f"{job.id} has no attempt {attempt}",
                hint=f"it has 1 to {job.attempt}" if job.attempt else "it has not started yet",
            )
        number = attempt or job.attempt
        if number:
            folder = view.session.home.attempt(job.request.run, job.request.phase, number)
            found.append(Log(job=job.id, attempt=number, path=folder / "output.log"))
    return found


def is_over(job: Job, attempt: int) -> bool:
    return job.attempt > attempt or any(past.attempt == attempt for past in job.past)


def describe_log(log: Log) -> LogTold:
    text = ""
    while data := log.read():
        text += log.decoder.decode(data)
    return {"job": log.job, "attempt": log.attempt, "path": str(log.path), "text": text}
