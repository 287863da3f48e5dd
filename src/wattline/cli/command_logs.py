"""The logs command: what did an attempt print? Shown so that it cannot give orders to a terminal."""

from __future__ import annotations

import codecs
import os
import stat
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from wattline.cli.finding import View, find_jobs, open_view
from wattline.cli.printing import plain, print_json
from wattline.errors import UnavailableError, UsageError
from wattline.state import ENDED, Job

_CHUNK_BYTES = 1 << 16
_FOLLOW_SECONDS = 0.3
_INTERRUPTED_EXIT_CODE = 130


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
        try:
            # Never through a link and never waiting: the script could have put anything in its folder.
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise UnavailableError(
                f"log {self.path}: cannot be read: {error.strerror or error}",
                hint="check that this user may read the state folder",
            ) from error
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UnavailableError(f"log {self.path}: this is no longer a file")
            data = os.pread(handle, _CHUNK_BYTES, self.read_bytes)
        finally:
            os.close(handle)
        self.read_bytes += len(data)
        return data


def show_logs(name: str | None, *, attempt: int | None, follow: bool, as_json: bool) -> int:
    if follow and as_json:
        raise UsageError(
            "--follow has no end, so it cannot be one JSON document", hint="leave one of them out"
        )
    with open_view() as view:
        _, jobs = find_jobs(view.state, name)
        if attempt is not None and len(jobs) > 1:
            raise UsageError("--attempt is of one job", hint=f"name the job, such as {jobs[-1].id}")
        logs = _logs_of(view, jobs, attempt)
        if not logs and not follow:
            raise UnavailableError(
                f"{jobs[0].id if len(jobs) == 1 else 'this run'} has not started yet, so it printed nothing",
                hint="`wattline explain` says why; --follow waits for it",
            )
        if as_json:
            print_json({"logs": [_describe(log) for log in logs]})
            return 0
        try:
            _print(logs, with_titles=len(jobs) > 1)
            if follow:
                _follow(view, jobs, attempt, logs)
        except KeyboardInterrupt:
            return _INTERRUPTED_EXIT_CODE
    return 0


def _logs_of(view: View, jobs: tuple[Job, ...], attempt: int | None) -> list[Log]:
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


def _follow(view: View, jobs: tuple[Job, ...], attempt: int | None, logs: list[Log]) -> None:
    """Print what comes, later attempts and phases too, until all has ended or nobody conducts any more."""
    seen = {(log.job, log.attempt): log for log in logs}
    last = logs[-1] if logs else None
    while True:
        now = [view.state.jobs[job.id] for job in jobs]
        over = attempt is not None and all(_is_over(job, attempt) for job in now)
        over = over or all(job.state in ENDED for job in now) or view.session.store.lease.current() is None
        for log in _logs_of(view, tuple(now), attempt):
            seen.setdefault((log.job, log.attempt), log)
        for log in seen.values():
            while data := log.read():
                if last is not log:
                    _print_title(log)
                    last = log
                _write(log, data)
        sys.stdout.flush()
        if over:
            return
        time.sleep(_FOLLOW_SECONDS)
        view.session.refresh()


def _is_over(job: Job, attempt: int) -> bool:
    return job.attempt > attempt or any(past.attempt == attempt for past in job.past)


def _print(logs: list[Log], *, with_titles: bool) -> None:
    for log in logs:
        if with_titles:
            _print_title(log)
        while data := log.read():
            _write(log, data)
    sys.stdout.flush()


def _print_title(log: Log) -> None:
    sys.stdout.write(f"==> {log.title} <==\n")


def _write(log: Log, data: bytes) -> None:
    """As it is into a file or a pipe; on a terminal, text only."""
    if sys.stdout.isatty():
        sys.stdout.write(plain(log.decoder.decode(data)))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def _describe(log: Log) -> dict[str, object]:
    text = ""
    while data := log.read():
        text += log.decoder.decode(data)
    return {"job": log.job, "attempt": log.attempt, "path": str(log.path), "text": text}
