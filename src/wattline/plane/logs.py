"""What did an attempt print?"""

from __future__ import annotations

import codecs
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from wattline.errors import UnavailableError, UsageError
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


def read_log(path: Path, offset: int, most_bytes: int) -> bytes:
    """A piece of what was printed; empty where there is none yet."""
    try:
        # Never through a link and never waiting: the script could have put anything in its folder.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UnavailableError(
            f"log {path}: cannot be read: {error.strerror or error}",
            hint="check that this user may read the state folder",
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UnavailableError(f"log {path}: this is no longer a file")
        return os.pread(handle, most_bytes, offset)
    finally:
        os.close(handle)


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
