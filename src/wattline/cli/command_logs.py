"""The logs command: what did an attempt print? Shown so that it cannot give orders to a terminal."""

from __future__ import annotations

import sys
import time

from wattline.cli.printing import plain, print_json
from wattline.cli.remote import find_server
from wattline.cli.remote_logs import follow_remote
from wattline.errors import UnavailableError, UsageError
from wattline.plane.finding import View, find_jobs, open_view
from wattline.plane.logs import Log, describe_log, is_over, logs_of
from wattline.state import ENDED, Job

_FOLLOW_SECONDS = 0.3
_INTERRUPTED_EXIT_CODE = 130


def show_logs(name: str | None, *, attempt: int | None, follow: bool, as_json: bool) -> int:
    if follow and as_json:
        raise UsageError(
            "--follow has no end, so it cannot be one JSON document", hint="leave one of them out"
        )
    server = find_server()
    if server is not None:
        return follow_remote(server, name, attempt=attempt, follow=follow, as_json=as_json)
    with open_view() as view:
        _, jobs = find_jobs(view.state, name)
        if attempt is not None and len(jobs) > 1:
            raise UsageError("--attempt is of one job", hint=f"name the job, such as {jobs[-1].id}")
        logs = logs_of(view, jobs, attempt)
        if not logs and not follow:
            raise UnavailableError(
                f"{jobs[0].id if len(jobs) == 1 else 'this run'} has not started yet, so it printed nothing",
                hint="`wattline explain` says why; --follow waits for it",
            )
        if as_json:
            print_json({"logs": [describe_log(log) for log in logs]})
            return 0
        try:
            _print(logs, with_titles=len(jobs) > 1)
            if follow:
                _follow(view, jobs, attempt, logs)
        except KeyboardInterrupt:
            return _INTERRUPTED_EXIT_CODE
    return 0


def _follow(view: View, jobs: tuple[Job, ...], attempt: int | None, logs: list[Log]) -> None:
    """Print what comes, later attempts and phases too, until all has ended or nobody conducts any more."""
    seen = {(log.job, log.attempt): log for log in logs}
    last = logs[-1] if logs else None
    while True:
        now = [view.state.jobs[job.id] for job in jobs]
        over = attempt is not None and all(is_over(job, attempt) for job in now)
        over = over or all(job.state in ENDED for job in now) or view.session.store.lease.current() is None
        for log in logs_of(view, tuple(now), attempt):
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
